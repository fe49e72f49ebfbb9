import { encode } from '@ipld/dag-cbor';
import type { Block } from '@skerry/kit/unixfs';
import { varint } from 'multiformats';
import type { CID } from 'multiformats/cid';

/** A length, and what has it (IPLD specifications, "CARv1"). */
function sectionOf(...parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, { length }) => sum + length, 0);
  const head = varint.encodeTo(length, new Uint8Array(varint.encodingLength(length)));
  return Buffer.concat([head, ...parts]);
}

export const encodeCarHeader = (roots: readonly CID[]): Uint8Array =>
  sectionOf(encode({ version: 1, roots }));

/** A CAR, one section at a time. */
export async function* encodeCar(
  roots: readonly CID[],
  blocks: AsyncIterable<Block>,
): AsyncGenerator<Uint8Array> {
  yield encodeCarHeader(roots);
  for await (const { id, bytes } of blocks) yield sectionOf(id.cid.bytes, bytes);
}
