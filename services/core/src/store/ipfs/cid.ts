import { type BlockId, findBlockId, isReadable, parseBlockId, SHA2_256 } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { CID } from 'multiformats/cid';
import { create as createDigest } from 'multiformats/hashes/digest';

/** Version 0 in base58, or version 1 in base32: one spelling each. */
const FORM = /^(Qm[1-9A-HJ-NP-Za-km-z]{44}|baf[ky][a-z2-7]{55})$/;

/** Codec of bytes that link to nothing (multicodec `raw`). */
const RAW = 0x55;

const VERSION_BITS = 7;
const CODEC_MASK = (1 << VERSION_BITS) - 1;

/**
 * A CID of a block that is kept here as 33 characters of Latin-1, for links that wait by the hundred thousand: a BlockId takes ten
 * times as much. Undefined where the CID is of another hash or codec.
 */
export function packCid(cid: CID): string | undefined {
  if (!isReadable(cid)) return undefined;
  const { version, code, multihash } = cid;
  const { digest } = multihash;
  const kind = String.fromCharCode((version << VERSION_BITS) | code);
  return kind + Buffer.from(digest.buffer, digest.byteOffset, digest.length).toString('latin1');
}

const digestOf = (packed: string) => Buffer.from(packed.slice(1), 'latin1');

/** @param packed as `packCid` gives it */
export const digestOfPacked = (packed: string): string => digestOf(packed).toString('hex');

/** @param packed as `packCid` gives it */
export function unpackId(packed: string): BlockId {
  const kind = packed.charCodeAt(0);
  const digest = createDigest(SHA2_256, digestOf(packed));
  return findBlockId(CID.create((kind >> VERSION_BITS) as 0 | 1, kind & CODEC_MASK, digest))!;
}

/** A block by its digest alone, whatever it is: of whom it is asked for, it is the same bytes. @param digest SHA-256 in hexadecimal */
export const rawIdOf = (digest: string): BlockId =>
  findBlockId(CID.createV1(RAW, createDigest(SHA2_256, Buffer.from(digest, 'hex'))))!;

export const isCidText = (text: string): boolean => FORM.test(text);

/** Throws INVALID_HASH. */
export function parseCid(text: string): BlockId {
  const id = isCidText(text) ? parseBlockId(text) : undefined;
  // The same bits in one spelling: what does not come back as it was has stray bits in its last digit.
  if (id?.text === text) return id;
  throw new AppError(
    'INVALID_HASH',
    'a CID is version 0 (Qm...) or version 1 in base32 (bafy..., bafk...), with SHA-256',
    { details: { length: text.length } },
  );
}
