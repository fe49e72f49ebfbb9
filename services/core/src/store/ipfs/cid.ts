import { AppError } from '@skerry/protocol';
import { CID } from 'multiformats/cid';
import { create as createDigest } from 'multiformats/hashes/digest';

/** Codecs of blocks that are read here (multicodec table): UnixFS nodes and bare bytes. */
const DAG_PB = 0x70;
const RAW = 0x55;
const SHA2_256 = 0x12;
/** Version 0 in base58, or version 1 in base32: one spelling each. */
const FORM = /^(Qm[1-9A-HJ-NP-Za-km-z]{44}|baf[ky][a-z2-7]{55})$/;

/** A CID of a UnixFS node or of bare bytes, by SHA-256: the only ones that are kept. */
export interface BlockId {
  /** As it was written. */
  readonly text: string;
  readonly cid: CID;
  /** SHA-256 of the block, 64 hexadecimal digits: two CIDs with one digest name one block. */
  readonly digest: string;
  readonly isRaw: boolean;
}

/** Undefined where the CID is of another hash or codec. */
export function findBlockId(cid: CID): BlockId | undefined {
  const { code, multihash } = cid;
  if ((code !== DAG_PB && code !== RAW) || multihash.code !== SHA2_256 || multihash.digest.length !== 32)
    return undefined;
  return {
    text: cid.toString(),
    cid,
    digest: Buffer.from(multihash.digest).toString('hex'),
    isRaw: code === RAW,
  };
}

const VERSION_BITS = 7;
const CODEC_MASK = (1 << VERSION_BITS) - 1;

/**
 * A CID of a block that is kept here as 33 characters of Latin-1, for links that wait by the hundred thousand: a BlockId takes ten
 * times as much. Undefined where the CID is of another hash or codec.
 */
export function packCid({ version, code, multihash }: CID): string | undefined {
  const { digest } = multihash;
  if ((code !== DAG_PB && code !== RAW) || multihash.code !== SHA2_256 || digest.length !== 32)
    return undefined;
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

export const isCidText = (text: string): boolean => FORM.test(text);

/** Throws INVALID_HASH. */
export function parseCid(text: string): BlockId {
  if (isCidText(text)) {
    try {
      const id = findBlockId(CID.parse(text));
      // The same bits in one spelling: what does not come back as it was has stray bits in its last digit.
      if (id?.text === text) return id;
    } catch {
      // Not a multihash.
    }
  }
  throw new AppError(
    'INVALID_HASH',
    'a CID is version 0 (Qm...) or version 1 in base32 (bafy..., bafk...), with SHA-256',
    { details: { length: text.length } },
  );
}
