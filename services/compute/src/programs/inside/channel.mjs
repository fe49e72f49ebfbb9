// Runs inside the sandbox: what a runtime in JavaScript and the compute node tell each other (sandbox/frames.ts).
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';

const CHANNEL = 3;
const PREFIX_BYTES = 8;
const RETRY_MS = 1;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** All of it, also when the process is about to end. */
function writeAll(bytes) {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(CHANNEL, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(sleeper, 0, 0, RETRY_MS);
    }
  }
}

export function send(head, body = Buffer.alloc(0)) {
  const text = Buffer.from(JSON.stringify(head));
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(text.length, 0);
  prefix.writeUInt32BE(body.length, 4);
  writeAll(Buffer.concat([prefix, text, body]));
}

export const channel = new Socket({ fd: CHANNEL, readable: true, writable: false });

/** Tells of each frame, in order. */
export function receive(onFrame) {
  let parts = [];
  let sizeBytes = 0;
  // Pieces are put together once for each frame, however large that is.
  let neededBytes = PREFIX_BYTES;
  channel.on('data', (chunk) => {
    parts.push(chunk);
    sizeBytes += chunk.length;
    while (sizeBytes >= neededBytes) {
      const all = Buffer.concat(parts);
      parts = [all];
      const headEnd = PREFIX_BYTES + all.readUInt32BE(0);
      neededBytes = headEnd + all.readUInt32BE(4);
      if (sizeBytes < neededBytes) return;
      const [head, body] = [
        JSON.parse(all.subarray(PREFIX_BYTES, headEnd)),
        all.subarray(headEnd, neededBytes),
      ];
      parts = [all.subarray(neededBytes)];
      sizeBytes -= neededBytes;
      neededBytes = PREFIX_BYTES;
      onFrame(head, body);
    }
  });
  channel.on('end', () => process.exit(0));
}

/** What a program gave, as an answer: text, bytes, or JSON. */
export function answerOf(value) {
  if (typeof value === 'string')
    return {
      status: 200,
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      body: Buffer.from(value),
    };
  if (value instanceof Uint8Array)
    return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: Buffer.from(value) };
  const text = JSON.stringify(value === undefined ? null : value) ?? 'null';
  return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(text) };
}

/** JSON is UTF-8 without a byte order mark (RFC 8259, section 8.1): what is not stays as it is, and then does not parse. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What a program wrote, as an answer: JSON where it is that, else text. */
export function answerOfOutput(bytes) {
  let type = 'text/plain; charset=utf-8';
  try {
    JSON.parse(utf8.decode(bytes));
    type = 'application/json';
  } catch {
    // Text then.
  }
  return { status: 200, headers: { 'content-type': type }, body: bytes };
}
