// Runs inside the sandbox: unpacks archives of strangers (APPNOTE.TXT 4.3), where nothing but their own program can come to harm.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inflateRawSync } from 'node:zlib';

const END_SIGNATURE = 0x06054b50;
const ENTRY_SIGNATURE = 0x02014b50;
const END_BYTES = 22;
const COMMENT_BYTES_MAX = 65_535;
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;

function findEnd(bytes) {
  const last = bytes.length - END_BYTES;
  for (let at = last; at >= Math.max(0, last - COMMENT_BYTES_MAX); at--)
    if (bytes.readUInt32LE(at) === END_SIGNATURE) return at;
  throw new Error('the code is not a zip archive');
}

export function unpack(bytes, directory) {
  const end = findEnd(bytes);
  let at = bytes.readUInt32LE(end + 16);
  for (let count = bytes.readUInt16LE(end + 10); count > 0; count--) {
    if (bytes.readUInt32LE(at) !== ENTRY_SIGNATURE) throw new Error('the zip archive is damaged');
    const [method, packed] = [bytes.readUInt16LE(at + 10), bytes.readUInt32LE(at + 20)];
    const [nameBytes, extra, comment] = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset));
    const local = bytes.readUInt32LE(at + 42);
    const name = bytes.toString('utf8', at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes);
    at += ENTRY_BYTES + nameBytes + extra + comment;
    if (name.split('/').includes('..')) throw new Error(`the zip archive names ${name}`);
    const path = join(directory, name);
    if (name.endsWith('/')) {
      mkdirSync(path, { recursive: true });
      continue;
    }
    const start = local + LOCAL_BYTES + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const data = bytes.subarray(start, start + packed);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, method === 0 ? data : inflateRawSync(data));
  }
}
