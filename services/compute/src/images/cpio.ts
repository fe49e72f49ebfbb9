import { Buffer } from 'node:buffer';

/** One entry of an archive; `mode` carries the file type bits (0o040000 directory, 0o100000 file, 0o120000 symlink). */
export interface CpioEntry {
  path: string;
  mode: number;
  data: Uint8Array;
}

const MAGIC = '070701';
const ALIGN = 4;
const TRAILER = 'TRAILER!!!';

/**
 * The archive in the "newc" form that the Linux kernel unpacks as an initramfs
 * (Documentation/driver-api/early-userspace/buffer-format.rst). Owner root, time 0: the same input gives the same bytes.
 */
export function encodeCpio(entries: readonly CpioEntry[]): Buffer {
  const parts: Buffer[] = [];
  entries.forEach((entry, index) => {
    parts.push(...encodeEntry(entry, index + 1));
  });
  parts.push(...encodeEntry({ path: TRAILER, mode: 0, data: new Uint8Array() }, 0));
  return Buffer.concat(parts);
}

/** A directory entry. */
export function directory(path: string): CpioEntry {
  return { path, mode: 0o040755, data: new Uint8Array() };
}

/** A file entry; `permissions` without type bits. */
export function file(path: string, data: Uint8Array, permissions = 0o644): CpioEntry {
  return { path, mode: 0o100000 | permissions, data };
}

function encodeEntry(entry: CpioEntry, inode: number): Buffer[] {
  const name = Buffer.from(`${entry.path}\0`);
  const links = (entry.mode & 0o170000) === 0o040000 ? 2 : 1;
  const fields = [inode, entry.mode, 0, 0, links, 0, entry.data.length, 0, 0, 0, 0, name.length, 0];
  const header = MAGIC + fields.map((field) => field.toString(16).padStart(8, '0')).join('');
  return [
    pad(Buffer.concat([Buffer.from(header), name])),
    pad(Buffer.from(entry.data.buffer, entry.data.byteOffset, entry.data.length)),
  ];
}

function pad(bytes: Buffer): Buffer {
  const rest = bytes.length % ALIGN;
  return rest === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(ALIGN - rest)]);
}
