import { decode } from '@ipld/dag-cbor';
import { type Block, type BlockId, digestOfBlock, findBlockId } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { CID } from 'multiformats/cid';
import { IPFS_LIMITS } from '../limits.ts';

/** One root and its frame; whoever writes more roots into a header is refused anyway. */
const HEADER_BYTES = 4_096;
/** Of a CID before its block. */
const CID_BYTES = 128;
/** More digits than any length has that is taken. */
const VARINT_BYTES = 5;
const IDENTITY = 0x00;

const invalid = (what: string, cause?: unknown) =>
  new AppError('INVALID_CAR', `the CAR is malformed: ${what}`, { cause });

/** Takes exact numbers of bytes from pieces of any size. */
class Pieces {
  readonly #source: AsyncIterator<Uint8Array>;
  #piece: Uint8Array = new Uint8Array();

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async #fill(): Promise<boolean> {
    while (this.#piece.length === 0) {
      const { done, value } = await this.#source.next();
      if (done) return false;
      this.#piece = value;
    }
    return true;
  }

  /** Undefined where the source has ended before the first byte. */
  async take(length: number): Promise<Uint8Array | undefined> {
    const taken = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; ) {
      if (!(await this.#fill())) {
        if (at === 0) return undefined;
        throw invalid('it breaks off');
      }
      const part = this.#piece.subarray(0, length - at);
      taken.set(part, at);
      at += part.length;
      this.#piece = this.#piece.subarray(part.length);
    }
    return taken;
  }

  /** An unsigned varint; undefined at the end of the source. */
  async varint(): Promise<number | undefined> {
    let value = 0;
    for (let n = 0; n < VARINT_BYTES; n++) {
      const byte = (await this.take(1))?.[0];
      if (byte === undefined) {
        if (n === 0) return undefined;
        throw invalid('it breaks off');
      }
      value += (byte & 0x7f) * 2 ** (7 * n);
      if (byte < 0x80) return value;
    }
    throw invalid('a length has too many digits');
  }

  /** What comes with its length before it; undefined at the end of the source. */
  async section(limitBytes: number): Promise<Uint8Array | undefined> {
    const length = await this.varint();
    if (length === undefined) return undefined;
    if (length === 0 || length > limitBytes)
      throw invalid(`a section of ${length} bytes; they have 1 to ${limitBytes}`);
    const bytes = await this.take(length);
    if (!bytes) throw invalid('it breaks off');
    return bytes;
  }
}

function rootOf(header: Uint8Array | undefined): BlockId {
  let decoded: { readonly version?: unknown; readonly roots?: unknown } | undefined;
  try {
    decoded = header && decode(header);
  } catch (cause) {
    throw invalid('its header is no DAG-CBOR', cause);
  }
  if (decoded?.version !== 1) throw invalid('its header is not of version 1');
  const { roots } = decoded;
  if (!Array.isArray(roots) || roots.length !== 1) throw invalid('it must have exactly one root');
  const cid = CID.asCID(roots[0]);
  const root = cid && findBlockId(cid);
  if (!root) throw invalid('its root is not of UnixFS, with SHA-256');
  return root;
}

/** A section as a block, checked against its CID. Undefined for a CID that holds its block itself. */
function blockOf(section: Uint8Array): Block | undefined {
  let cid: CID;
  let bytes: Uint8Array;
  try {
    [cid, bytes] = CID.decodeFirst(section);
  } catch (cause) {
    throw invalid('a block has no CID', cause);
  }
  if (cid.multihash.code === IDENTITY) return undefined;
  const id = findBlockId(cid);
  if (!id) throw invalid(`the block ${cid} is not of UnixFS, with SHA-256`);
  if (bytes.length > IPFS_LIMITS.blockBytes)
    throw invalid(`the block ${id.text} has more than ${IPFS_LIMITS.blockBytes} bytes`);
  if (digestOfBlock(bytes) !== id.digest)
    throw invalid(`the bytes of the block ${id.text} do not match its CID`);
  return { id, bytes };
}

async function* blocksOf(pieces: Pieces): AsyncGenerator<Block> {
  let count = 0;
  for (;;) {
    const section = await pieces.section(IPFS_LIMITS.blockBytes + CID_BYTES);
    if (!section) return;
    if (++count > IPFS_LIMITS.blocks)
      throw new AppError('FILE_TOO_LARGE', `a CAR may have ${IPFS_LIMITS.blocks} blocks`);
    const block = blockOf(section);
    if (block) yield block;
  }
}

/**
 * Reads a CAR of version 1 with one root, one block at a time, each checked against its CID; nobody is believed about a
 * length. Throws INVALID_CAR, FILE_TOO_LARGE, and what the source throws.
 */
export async function openCar(
  source: AsyncIterable<Uint8Array>,
): Promise<{ readonly root: BlockId; readonly blocks: AsyncGenerator<Block> }> {
  const pieces = new Pieces(source);
  const root = rootOf(await pieces.section(HEADER_BYTES));
  return { root, blocks: blocksOf(pieces) };
}
