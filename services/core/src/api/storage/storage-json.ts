import { Readable } from 'node:stream';
import { isItemHash64 } from '@skerry/protocol';

/** The largest file that is answered in base64 within JSON, in bytes. */
export const JSON_FILE_BYTES_MAX = 100 * 1024 * 1024;

/** Where deployed nodes have a file from: files that are named by CID are those of IPFS. */
const engineOf = (hash: string) => (isItemHash64(hash) ? 'storage' : 'ipfs');
const headOf = (hash: string) =>
  `{"status":"success","hash":"${hash}","engine":"${engineOf(hash)}","content":"`;
const TAIL = '"}';

/** Bytes of the JSON form of a file of this size. */
export const jsonLength = (hash: string, sizeBytes: number) =>
  headOf(hash).length + Math.ceil(sizeBytes / 3) * 4 + TAIL.length;

/** Base64 (RFC 4648, section 4) as it comes: what does not fill three bytes waits for the next piece. */
async function* encode(hash: string, source: Readable): AsyncGenerator<string> {
  yield headOf(hash);
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of source as AsyncIterable<Buffer>) {
    const whole = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const cut = whole.length - (whole.length % 3);
    yield whole.toString('base64', 0, cut);
    rest = whole.subarray(cut);
  }
  yield rest.toString('base64') + TAIL;
}

/** A file as `{status, hash, engine, content}` with its bytes in base64; memory does not grow with its size. */
export const encodeAsJson = (hash: string, source: Readable): Readable =>
  Readable.from(encode(hash, source), { objectMode: false, highWaterMark: 256 * 1024 });
