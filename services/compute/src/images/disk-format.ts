import { AppError, LIMITS } from '@skerry/protocol';

/** What a file that strangers call a disk image is. */
export interface DiskFormat {
  readonly format: 'qcow2' | 'raw';
  /** What the guest would see, in bytes. For a raw image the file's own size. */
  readonly virtualBytes: number;
}

/** So much of the beginning of a file decides what it is. */
export const HEAD_BYTES = 4_096;
const GIB = 1024 ** 3;
const SECTOR_BYTES = 512;

/** qcow2 header (docs/interop/qcow2.txt of QEMU): where its fields are, and the one feature that names another file. */
const QCOW2 = {
  magic: 0x514649fb,
  versions: [2, 3],
  headerBytes: 104,
  backingFileOffset: 8,
  sizeOffset: 24,
  cryptOffset: 32,
  featuresOffset: 72,
  externalData: 1n << 2n,
} as const;

const BOOT_SIGNATURE = { offset: 510, value: 0xaa55 };
/** The superblock of ext2 to ext4 begins at 1024, its magic 56 bytes later. */
const EXT_MAGIC = { offset: 1_080, value: 0xef53 };

/** What files begin with that people take for disk images. */
const OTHERS: readonly { readonly what: string; readonly bytes: string }[] = [
  { what: 'gzip', bytes: '1f8b' },
  { what: 'xz', bytes: 'fd377a585a00' },
  { what: 'zstd', bytes: '28b52ffd' },
  { what: 'bzip2', bytes: '425a68' },
  { what: 'zip', bytes: '504b0304' },
  { what: 'VMDK', bytes: '4b444d56' },
  { what: 'VHDX', bytes: '7668647866696c65' },
];

const refuse = (why: string) => new AppError('INVALID_IMAGE', why);

/**
 * Decides by the first bytes of a file whether it is a disk image that may be used. An image that names another file (a
 * backing file, external data) is refused: it would name a file of this machine. Pure. Throws INVALID_IMAGE.
 * @param head the first HEAD_BYTES of the file, fewer where it is shorter
 */
export function parseDiskFormat(head: Uint8Array, fileBytes: number): DiskFormat {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const isQcow2 = head.length >= 4 && view.getUint32(0) === QCOW2.magic;
  const found: DiskFormat = isQcow2
    ? { format: 'qcow2', virtualBytes: parseQcow2(view) }
    : { format: 'raw', virtualBytes: parseRaw(view, fileBytes) };
  if (found.virtualBytes < SECTOR_BYTES) throw refuse('the disk of the image has no size');
  if (found.virtualBytes > LIMITS.instanceDiskGibMax * GIB)
    throw refuse(
      `the disk of the image has ${Math.ceil(found.virtualBytes / GIB)} GiB; the limit is ${LIMITS.instanceDiskGibMax} GiB`,
    );
  return found;
}

function parseQcow2(view: DataView): number {
  if (view.byteLength < QCOW2.headerBytes) throw refuse('the qcow2 header is incomplete');
  const version = view.getUint32(4);
  if (!QCOW2.versions.some((one) => one === version))
    throw refuse(`qcow2 version ${version} is not supported`);
  if (view.getBigUint64(QCOW2.backingFileOffset) !== 0n)
    throw refuse(
      'the qcow2 image depends on another file (a backing file); convert it to a standalone image',
    );
  if (view.getUint32(QCOW2.cryptOffset) !== 0) throw refuse('the qcow2 image is encrypted');
  if (version >= 3 && (view.getBigUint64(QCOW2.featuresOffset) & QCOW2.externalData) !== 0n)
    throw refuse('the qcow2 image stores its data in another file');
  const size = view.getBigUint64(QCOW2.sizeOffset);
  return size > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(size);
}

function parseRaw(view: DataView, fileBytes: number): number {
  const digits = Array.from({ length: Math.min(8, view.byteLength) }, (_, index) =>
    view.getUint8(index).toString(16).padStart(2, '0'),
  ).join('');
  const other = OTHERS.find(({ bytes }) => digits.startsWith(bytes));
  if (other) throw refuse(`the file is ${other.what}; an image must be uncompressed qcow2 or raw`);
  if (!hasBootSector(view) && !hasExt(view))
    throw refuse(
      'the file is neither qcow2 nor a bootable raw disk: it has no boot sector and no ext file system',
    );
  return fileBytes - (fileBytes % SECTOR_BYTES);
}

/** Whether a disk boots by itself, from its first bytes; else it is a bare file system that needs a kernel from outside. */
export function hasBootSector(view: DataView): boolean {
  const { offset, value } = BOOT_SIGNATURE;
  return view.byteLength >= offset + 2 && view.getUint16(offset, true) === value;
}

function hasExt(view: DataView): boolean {
  const { offset, value } = EXT_MAGIC;
  return view.byteLength >= offset + 2 && view.getUint16(offset, true) === value;
}
