import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { type BlockId, digestOfBlock } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { encodeCar } from './car/encode.ts';
import { openCar } from './car/read.ts';
import { parseCid } from './cid.ts';
import { readUpTo } from './gateways.ts';
import { toTheEnd } from './idle.ts';
import type { AddOptions, Ipfs, PinOptions } from './ipfs.ts';
import { type KuboCall, KuboRpc, type KuboSettings } from './kubo-rpc.ts';
import { letGoOfEach } from './let-go.ts';
import { IPFS_LIMITS } from './limits.ts';
import type { PinBook } from './pin-book.ts';
import { createUnixfs } from './unixfs.ts';

/** Who begins to pin waits as long for one that is let go of: less than the database has them wait. */
const UNPIN_MAX_MS = 20_000;

const wrongAnswer = (what: string) => new AppError('IPFS_UNAVAILABLE', `the IPFS daemon sent ${what}`);

/** A form with one file (RFC 7578), as it comes. Ends with FILE_TOO_LARGE where the file is larger. */
async function* formOf(boundary: string, file: Readable, limitBytes: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="file"\r\ncontent-type: application/octet-stream\r\n\r\n`,
  );
  let size = 0;
  for await (const chunk of file as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limitBytes) throw new AppError('FILE_TOO_LARGE', `a file may have ${limitBytes} bytes here`);
    yield chunk;
  }
  yield Buffer.from(`\r\n--${boundary}--\r\n`);
}

function bodyOf(file: Readable, limitBytes: number): NonNullable<KuboCall['body']> {
  const boundary = `skerry-${randomUUID()}`;
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    chunks: formOf(boundary, file, limitBytes),
  };
}

function addCall(file: Readable, { cidVersion, limitBytes, signal }: AddOptions): KuboCall {
  return {
    command: 'add',
    // In full, since the daemon's own settings may say otherwise.
    query: {
      'cid-version': String(cidVersion),
      'raw-leaves': String(cidVersion === 1),
      chunker: 'size-262144',
      hash: 'sha2-256',
      pin: 'true',
      progress: 'true',
    },
    body: bodyOf(file, limitBytes),
    signal,
  };
}

/** Hands a CAR on, checked. The daemon is not asked to pin what it may lack: it would look for that with others. @returns the root */
async function importCar(rpc: KuboRpc, car: Readable, { limitBytes, signal }: PinOptions): Promise<BlockId> {
  const { root, blocks } = await openCar(car);
  const checked = Readable.from(encodeCar([root.cid], blocks), { objectMode: false });
  const query = { 'pin-roots': 'false', 'allow-big-block': 'true' };
  await rpc.lines({ command: 'dag/import', query, body: bodyOf(checked, limitBytes), signal });
  return root;
}

/** @param offline from what the daemon keeps alone */
async function fetchBlock(
  rpc: KuboRpc,
  id: BlockId,
  signal: AbortSignal,
  offline: boolean,
): Promise<Uint8Array> {
  const query = { arg: id.text, ...(offline ? { offline: 'true' } : {}) };
  const bytes = await rpc.call({ command: 'block/get', query, signal }, (response, note) =>
    readUpTo(response, IPFS_LIMITS.blockBytes, note),
  );
  if (bytes === undefined || digestOfBlock(bytes) !== id.digest)
    throw wrongAnswer(`something else than ${id.text}`);
  return bytes;
}

/** Bytes of all blocks below a CID that is pinned, or undefined where the daemon cannot say. */
async function findDagBytes(rpc: KuboRpc, id: BlockId, signal: AbortSignal): Promise<number | undefined> {
  const call = { command: 'dag/stat', query: { arg: id.text, progress: 'false' }, signal };
  const body = await rpc
    .call(call, (response) => readUpTo(response, IPFS_LIMITS.answerBytes))
    .catch(() => undefined);
  const sizes = /"(?:TotalSize|Size)":\s*(\d{1,15})/.exec(body?.toString() ?? '');
  return sizes ? Number(sizes[1]) : undefined;
}

async function removePin(rpc: KuboRpc, cid: string, timeoutMs: number): Promise<void> {
  const signal = AbortSignal.timeout(Math.min(timeoutMs, UNPIN_MAX_MS));
  try {
    await rpc.lines({ command: 'pin/rm', query: { arg: cid }, signal });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'CID_NOT_FOUND') throw error;
  }
}

/** IPFS by a kubo daemon: it fetches, keeps and pins; blocks that it hands out are checked. */
export function createKuboIpfs(settings: KuboSettings, pins: PinBook): Ipfs {
  const rpc = new KuboRpc(settings);
  const unixfs = createUnixfs((id, signal) => fetchBlock(rpc, id, signal, false));
  const letGo = (cid: string, beforeMs: number) =>
    pins.letGo(cid, beforeMs, () => removePin(rpc, cid, settings.timeoutMs));
  let tidiedTo = '';
  const pin: Ipfs['pin'] = async (id, { limitBytes, signal }) => {
    const tooLarge = () => new AppError('FILE_TOO_LARGE', `${id.text} has more than ${limitBytes} bytes`);
    const node = await unixfs.stat(id, [], signal);
    if (node.sizeBytes > limitBytes) throw tooLarge();
    const begunMs = await pins.begin(id.text);
    const query = { arg: id.text, recursive: 'true', progress: 'true' };
    const lines = await rpc.lines({ command: 'pin/add', query, signal });
    if (!lines.some(({ Pins }) => Array.isArray(Pins))) throw wrongAnswer('no word of the pin');
    // A root may say that it is small.
    if (((await findDagBytes(rpc, id, signal)) ?? 0) <= limitBytes) return node;
    // Unless it is a file already, which was taken in under another limit, or somebody else has begun with it. What fails is tidied up.
    await letGo(id.text, begunMs + 1).catch(() => {});
    throw tooLarge();
  };
  return {
    name: 'kubo',
    ...unixfs,
    async add(file, options) {
      const lines = await rpc.lines(addCall(file, options));
      const hash = lines.at(-1)?.Hash;
      if (typeof hash !== 'string') throw wrongAnswer('no hash of the file');
      const id = parseCid(hash);
      await pins.begin(id.text);
      return unixfs.stat(id, [], toTheEnd());
    },
    pin,
    addCar: async (car, options) => pin(await importCar(rpc, car, options), options),
    unpin: (id, beforeMs) => letGo(id.text, beforeMs),
    // The daemon pins nothing of it, and collects it as its garbage.
    abandon: async () => {},
    block: (id, signal) => fetchBlock(rpc, id, signal, true),
    // Pins alone: the daemon collects its own garbage.
    async tidy(beforeMs) {
      const { cids, next } = await pins.listLeft(beforeMs, tidiedTo);
      const { failures, stoppedAt } = await letGoOfEach(cids, (cid) => letGo(cid, beforeMs));
      tidiedTo = stoppedAt ?? next;
      if (failures.length > 0) throw failures[0];
    },
  };
}
