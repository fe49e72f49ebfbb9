import { createHash } from 'node:crypto';
import { CID } from 'multiformats/cid';

/** Codecs of blocks that are read (multicodec table): UnixFS nodes and bare bytes. */
const DAG_PB = 0x70;
const RAW = 0x55;
export const SHA2_256 = 0x12;
const DIGEST_BYTES = 32;

/** A CID of a UnixFS node or of bare bytes, by SHA-256: the only ones that are read. */
export interface BlockId {
  /** As it was written. */
  readonly text: string;
  readonly cid: CID;
  /** SHA-256 of the block, 64 hexadecimal digits: two CIDs with one digest name one block. */
  readonly digest: string;
  readonly isRaw: boolean;
}

/** SHA-256 of a block, as `BlockId` has it. */
export const digestOfBlock = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Whether its block is read: it is of UnixFS or bare bytes, by SHA-256. */
export const isReadable = ({ code, multihash }: CID): boolean =>
  (code === DAG_PB || code === RAW) &&
  multihash.code === SHA2_256 &&
  multihash.digest.length === DIGEST_BYTES;

/** Undefined where the CID is of another hash or codec. */
export function findBlockId(cid: CID): BlockId | undefined {
  if (!isReadable(cid)) return undefined;
  const digest = Buffer.from(cid.multihash.digest).toString('hex');
  return { text: cid.toString(), cid, digest, isRaw: cid.code === RAW };
}

/** Undefined where the text is no CID, or one of another hash or codec. */
export function parseBlockId(text: string): BlockId | undefined {
  try {
    return findBlockId(CID.parse(text));
  } catch {
    return undefined;
  }
}
