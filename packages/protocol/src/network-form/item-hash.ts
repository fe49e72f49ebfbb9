import { AppError } from '../errors.ts';

/** Where the content of a message is: in the message, or in a file named by SHA-256 or by CID. */
export const ITEM_TYPES = ['inline', 'storage', 'ipfs'] as const;
export type ItemType = (typeof ITEM_TYPES)[number];

/** 64 lower-case hexadecimal digits. */
export const HASH64_PATTERN = '^[0-9a-f]{64}$';
/** The forms of CID that name messages and files: version 0 in base58, version 1 (dag-pb, SHA-256) in base32. */
export const CID_PATTERN = '^(Qm[1-9A-HJ-NP-Za-km-z]{42,44}|bafy[a-z2-7]{55})$';
/** Either. */
export const ANY_HASH_PATTERN = '^([0-9a-f]{64}|Qm[1-9A-HJ-NP-Za-km-z]{42,44}|bafy[a-z2-7]{55})$';

const HASH64_CHARS = 64;
const CID = new RegExp(CID_PATTERN);

const isHexDigit = (code: number) => (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x66);

/** Whether a text is of HASH64_PATTERN, in half of the time that an expression takes: each message is asked for it several times. */
export function isItemHash64(text: string): boolean {
  if (text.length !== HASH64_CHARS) return false;
  for (let at = 0; at < HASH64_CHARS; at++) if (!isHexDigit(text.charCodeAt(at))) return false;
  return true;
}

/** Whether a text has the form of a CID. Its inside (multihash, codec) is for whoever fetches the file to read. */
export const isCid = (text: string): boolean => CID.test(text);

export interface MessageHash {
  readonly hash: string;
  /** Where a content of this name is, unless it travels inline. */
  readonly itemType: 'storage' | 'ipfs';
}

/** Reads what may name a message of the network form. One spelling each: hexadecimal is lower case. Throws INVALID_HASH. */
export function parseMessageHash(text: string): MessageHash {
  if (isItemHash64(text)) return { hash: text, itemType: 'storage' };
  if (isCid(text)) return { hash: text, itemType: 'ipfs' };
  throw new AppError(
    'INVALID_HASH',
    'a hash is 64 lower-case hexadecimal digits, or a CID (Qm..., bafy...)',
    {
      details: { length: text.length },
    },
  );
}
