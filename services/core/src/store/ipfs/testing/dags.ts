import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { encode, prepare } from '@ipld/dag-pb';
import { digestOfBlock, findBlockId } from '@skerry/kit/unixfs';
import { UnixFS } from 'ipfs-unixfs';
import { importer } from 'ipfs-unixfs-importer';
import { CID } from 'multiformats/cid';
import { create } from 'multiformats/hashes/digest';
import { encodeCar } from '../car/encode.ts';

/** Blocks of things that others made, for daemons and gateways of the tests to have. */
export class Dag {
  readonly blocks: Uint8Array[] = [];
  /** Of each of them. */
  readonly cids: CID[] = [];

  /** @returns the CID of the block */
  put(bytes: Uint8Array, codec = 0x70, version: 0 | 1 = codec === 0x70 ? 0 : 1): CID {
    return this.#note(
      CID.create(version, codec, create(0x12, Buffer.from(digestOfBlock(bytes), 'hex'))),
      bytes,
    );
  }

  #note(cid: CID, bytes: Uint8Array): CID {
    this.blocks.push(bytes);
    this.cids.push(cid);
    return cid;
  }

  /** All of it, in the order in which it was made. */
  async car(...roots: readonly CID[]): Promise<Buffer> {
    const found = Readable.from(this.blocks.map((bytes, n) => ({ id: findBlockId(this.cids[n]!)!, bytes })));
    return Buffer.concat(await Readable.from(encodeCar(roots, found)).toArray());
  }

  node(data: UnixFS, links: readonly { name?: string; cid: CID; size: number }[] = []): CID {
    const node = prepare({
      Data: data.marshal(),
      Links: links.map(({ name, cid, size }) => ({ Name: name ?? '', Hash: cid, Tsize: size })),
    });
    return this.put(encode(node));
  }

  /** A directory as kubo makes one, with files below it. @returns the CID of the root */
  async directory(files: Readonly<Record<string, Uint8Array>>): Promise<CID> {
    const source = Object.entries(files).map(([path, content]) => ({ path: `root/${path}`, content }));
    const store = {
      put: (cid: CID, bytes: unknown) => this.#note(cid, bytes as Uint8Array),
    };
    let root: CID | undefined;
    for await (const made of importer(source, store, { profile: 'unixfs-v0-2015' })) root = made.cid;
    return root!;
  }

  /** A chain of nodes, each below the one before. */
  chain(depth: number): CID {
    let below = this.node(new UnixFS({ type: 'file', data: randomBytes(8) }));
    for (let n = 0; n < depth; n++)
      below = this.node(new UnixFS({ type: 'directory' }), [{ name: 'a', cid: below, size: 1 }]);
    return below;
  }
}
