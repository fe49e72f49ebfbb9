import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { Hold } from '@skerry/database';
import { type Block, type BlockId, digestOfBlock, findBlockId } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { type ImporterOptions, importFile } from 'ipfs-unixfs-importer';
import type { BlobStore } from '../files/blob-store.ts';
import type { Claims } from '../files/claims.ts';
import { type BlockIndex, IMPORT_PREFIX } from './block-index.ts';
import { Blocks } from './blocks.ts';
import { openCar } from './car/read.ts';
import type { BlockSource } from './gateways.ts';
import { toTheEnd } from './idle.ts';
import type { AddOptions, Ipfs, SentOptions } from './ipfs.ts';
import { IPFS_LIMITS } from './limits.ts';
import { createUnixfs } from './unixfs.ts';
import { walkDag } from './walk.ts';

/** Files as kubo makes them: version 0 as by `ipfs add`, version 1 as by `ipfs add --cid-version=1`. */
export const PROFILES: Readonly<Record<0 | 1, ImporterOptions>> = {
  0: { profile: 'unixfs-v0-2015', wrapWithDirectory: false },
  1: { profile: 'unixfs-v0-2015', cidVersion: 1, rawLeaves: true, wrapWithDirectory: false },
};

export interface EmbeddedOptions {
  readonly blobs: BlobStore;
  readonly claims: Claims;
  readonly index: BlockIndex;
  /** Where blocks come from that are not here. */
  readonly source: BlockSource;
}

/** Blocks are kept as they come: those of what does not fit would stay for the grace period. */
const holdFor = ({ blobs }: Pick<EmbeddedOptions, 'blobs'>, { limitBytes, sizeBytes }: SentOptions) =>
  blobs.hold?.(sizeBytes === undefined ? undefined : Math.min(sizeBytes, limitBytes));

async function* limited(
  source: Readable,
  { limitBytes, signal }: SentOptions,
  hold: Hold | undefined,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    size += chunk.length;
    if (size > limitBytes)
      throw new AppError('FILE_TOO_LARGE', `a file is limited to ${limitBytes} bytes here`);
    yield chunk;
    hold?.use(chunk.length);
  }
}

/** Notes digests in groups, each before its blocks are written. */
class Noting {
  readonly #index: BlockIndex;
  readonly #root: string;
  #gathered: string[] = [];
  #writing: Promise<void> | undefined;

  constructor(index: BlockIndex, root: string) {
    this.#index = index;
    this.#root = root;
  }

  /** Resolves when it is noted: whatever gathers while a group is written makes the next one. */
  async note(digest: string): Promise<void> {
    this.#gathered.push(digest);
    await this.#writing;
    if (this.#gathered.includes(digest))
      this.#writing = this.#index.add(this.#root, this.#gathered.splice(0));
    await this.#writing;
  }
}

interface Keeping extends Pick<EmbeddedOptions, 'blobs'> {
  readonly index: BlockIndex;
  readonly blocks: Blocks;
}

/** Keeps blocks for a root of its own until they are all here; if it fails, nothing needs them. */
async function keepingAll<T>(
  { index, blocks }: Keeping,
  take: (keep: (digest: string, bytes: Uint8Array) => Promise<void>, root: string) => Promise<T>,
): Promise<T> {
  const root = `${IMPORT_PREFIX}${randomUUID()}`;
  await index.begin(root);
  const noting = new Noting(index, root);
  const keep = async (digest: string, bytes: Uint8Array) => {
    await noting.note(digest);
    await blocks.keep(digest, bytes);
  };
  try {
    return await take(keep, root);
  } catch (error) {
    await index.drop(root).catch(() => {});
    throw error;
  }
}

/** Takes a file in. @returns the file's CID */
const importBlocks = (
  parts: Keeping,
  file: Readable,
  { cidVersion, ...options }: AddOptions,
): Promise<BlockId> =>
  keepingAll(parts, async (keep, root) => {
    const store = {
      async put(cid: BlockId['cid'], value: unknown) {
        // The importer hands over whole blocks.
        const bytes = value as Uint8Array;
        await keep(findBlockId(cid)?.digest ?? digestOfBlock(bytes), bytes);
        return cid;
      },
    };
    using hold = holdFor(parts, options);
    const content = limited(file, options, hold);
    const { cid } = await importFile({ content }, store, PROFILES[cidVersion]);
    const id = findBlockId(cid)!;
    await parts.index.complete(root, id.text);
    return id;
  });

/** Blocks that are written at the same time: as many as are fetched at the same time, or a few large ones. */
async function* groupsOf(blocks: AsyncIterable<Block>): AsyncGenerator<Block[]> {
  let group: Block[] = [];
  let size = 0;
  for await (const block of blocks) {
    group.push(block);
    size += block.bytes.length;
    if (group.length < IPFS_LIMITS.parallelBlocks && size < IPFS_LIMITS.blockBytes) continue;
    yield group;
    group = [];
    size = 0;
  }
  yield group;
}

/** Takes the blocks of a CAR in. Those that its root does not need are let go of. @returns the root */
const importCar = (parts: Keeping, car: Readable, options: SentOptions): Promise<BlockId> =>
  keepingAll(parts, async (keep, held) => {
    const { index, blocks } = parts;
    const { limitBytes, signal } = options;
    using hold = holdFor(parts, options);
    const { root, blocks: found } = await openCar(limited(car, options, hold));
    for await (const group of groupsOf(found))
      await Promise.all(group.map(({ id, bytes }) => keep(id.digest, bytes)));
    const find = async (id: BlockId) => {
      const bytes = await blocks.find(id);
      if (!bytes) throw new AppError('INVALID_CAR', `the CAR lacks the block ${id.text}, and it is not here`);
      return bytes;
    };
    await createUnixfs(find).stat(root, [], signal);
    await keepingAll(parts, async (_keep, needed) => {
      const renew = index.renewing(held, needed);
      await walkDag(root, {
        limitBytes,
        signal,
        note: (digests) => index.add(needed, digests),
        async obtain(id) {
          const bytes = await find(id);
          await renew();
          return bytes;
        },
      });
      await index.complete(needed, root.text);
    });
    await index.drop(held);
    return root;
  });

/** IPFS in this process: UnixFS over blocks in the node's blob store. */
export function createEmbeddedIpfs({ blobs, claims, index, source }: EmbeddedOptions): Ipfs {
  const blocks = new Blocks({ blobs, claims, source });
  const unixfs = createUnixfs((id, signal) => blocks.read(id, signal));
  return {
    name: 'embedded',
    ...unixfs,
    async add(file, options) {
      const id = await importBlocks({ blobs, index, blocks }, file, options);
      return unixfs.stat(id, [], toTheEnd());
    },
    async addCar(car, options) {
      const id = await importCar({ blobs, index, blocks }, car, options);
      return unixfs.stat(id, [], toTheEnd());
    },
    async pin(id, { limitBytes, signal }) {
      // Also where it is complete: it is not tidied up before the caller has noted it.
      await index.begin(id.text);
      if (!(await index.isComplete(id.text))) {
        // What is no UnixFS is not worth fetching the rest of it.
        await unixfs.stat(id, [], signal);
        const renew = index.renewing(id.text);
        // How much it is shows as it comes: it ends where the room does, and what is small goes on.
        using hold = blobs.hold?.(undefined);
        await walkDag(id, {
          limitBytes,
          signal,
          note: (digests) => index.add(id.text, digests),
          async obtain(one) {
            const bytes = await blocks.obtain(one, signal, hold);
            await renew();
            return bytes;
          },
        });
        await index.complete(id.text, id.text);
      }
      return unixfs.stat(id, [], signal);
    },
    unpin: (id, beforeMs) => index.drop(id.text, beforeMs),
    abandon: (id) => index.abandon(id.text),
    async block(id) {
      const bytes = await blocks.find(id);
      if (!bytes) throw new AppError('CID_NOT_FOUND', `the block ${id.text} is not here`);
      return bytes;
    },
    tidy: (beforeMs) => index.tidy(beforeMs),
  };
}
