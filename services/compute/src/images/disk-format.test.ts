import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { AppError } from '@skerry/protocol';
import fc from 'fast-check';
import { run } from '../host/run.ts';
import { convertDisk, readBootKind, readDiskFormat } from './convert.ts';
import { HEAD_BYTES, parseDiskFormat } from './disk-format.ts';

const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;
const MIB = 1024 * 1024;

describe('disk images of strangers', () => {
  let directory = '';
  const at = (name: string) => join(directory, name);
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'skerry-format-'));
    const boot = Buffer.alloc(2 * MIB);
    boot.writeUInt16LE(0xaa55, 510);
    await writeFile(at('boot.raw'), boot);
    await run('qemu-img', ['create', '-q', '-f', 'qcow2', at('plain.qcow2'), '3M']);
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', at('boot.raw'), at('boot.qcow2')]);
    await run('mke2fs', ['-q', '-t', 'ext4', at('ext.raw'), '4M']);
  });
  after(() => rm(directory, { recursive: true, force: true }));

  test('qcow2 and raw disks are taken, and made disks of our own that boot as the first did', async () => {
    for (const [name, format, bytes, boot] of [
      ['boot.raw', 'raw', 2 * MIB, 'firmware'],
      ['boot.qcow2', 'qcow2', 2 * MIB, 'firmware'],
      ['plain.qcow2', 'qcow2', 3 * MIB, 'kernel'],
      ['ext.raw', 'raw', 4 * MIB, 'kernel'],
    ] as const) {
      assert.deepEqual(await readDiskFormat(at(name)), { format, virtualBytes: bytes }, name);
      await convertDisk(at(name), format, at(`${name}.made`));
      assert.equal(await readBootKind(at(`${name}.made`)), boot, name);
    }
  });

  test('what names a file of this machine, is too large, is packed or is no disk at all is refused with the reason', async () => {
    const back = ['-b', '/etc/passwd', '-F', 'raw'];
    await run('qemu-img', ['create', '-q', '-u', '-f', 'qcow2', ...back, at('backed.qcow2'), '1M']);
    const outside = ['-o', `data_file=${at('data')},data_file_raw=on`];
    await run('qemu-img', ['create', '-q', '-f', 'qcow2', ...outside, at('outside.qcow2'), '1M']);
    await run('qemu-img', ['create', '-q', '-f', 'qcow2', at('huge.qcow2'), '10T']);
    await writeFile(at('packed'), gzipSync(await readFile(at('boot.raw'))));
    await writeFile(at('text'), 'This is a story about a disk. '.repeat(200));
    await writeFile(at('empty'), '');
    await writeFile(at('short.qcow2'), (await readFile(at('boot.qcow2'))).subarray(0, 50));
    for (const [name, why] of [
      ['backed.qcow2', /backing file/],
      ['outside.qcow2', /another file/],
      ['huge.qcow2', /10240 GiB; the limit is 2048 GiB/],
      ['packed', /gzip/],
      ['text', /neither qcow2 nor a bootable raw disk/],
      ['empty', /neither qcow2/],
      ['short.qcow2', /header is incomplete/],
    ] as const)
      await assert.rejects(
        readDiskFormat(at(name)),
        (error) => isError('INVALID_IMAGE')(error) && why.test((error as Error).message),
        name,
      );
  });

  test('a qcow2 that is damaged behind its header is refused by the tool, within its limits', async () => {
    const bytes = await readFile(at('boot.qcow2'));
    bytes.fill(0xff, 104, 200_000);
    await writeFile(at('damaged.qcow2'), bytes);
    const { format } = await readDiskFormat(at('damaged.qcow2'));
    await assert.rejects(
      convertDisk(at('damaged.qcow2'), format, at('damaged.made')),
      isError('INVALID_IMAGE'),
    );
  });

  test('a small file that holds more than the machine has room for is not begun with', async () => {
    // Half a terabyte, of which every cluster is said to be the first one.
    await writeFile(at('bomb.raw'), Buffer.alloc(2 * MIB, 'A'));
    await truncate(at('bomb.raw'), 512 * 1024 ** 3);
    const large = ['-O', 'qcow2', '-o', 'cluster_size=2M'];
    await run('qemu-img', ['convert', '-f', 'raw', ...large, at('bomb.raw'), at('bomb.qcow2')]);
    const bytes = await readFile(at('bomb.qcow2'));
    const tableOf = (offset: number) => Number(bytes.readBigUInt64BE(offset) & 0x00ff_ffff_ffff_fe00n);
    const table = tableOf(tableOf(40));
    const first = bytes.readBigUInt64BE(table);
    for (let entry = 0; entry < (2 * MIB) / 8; entry++) bytes.writeBigUInt64BE(first, table + 8 * entry);
    await writeFile(at('bomb.qcow2'), bytes);
    const { format } = await readDiskFormat(at('bomb.qcow2'));
    await assert.rejects(convertDisk(at('bomb.qcow2'), format, at('bomb.made')), isError('STORAGE_FULL'));
  });

  test('any bytes are a disk or an error of ours', async () => {
    const qcow2 = new Uint8Array(await readFile(at('plain.qcow2'))).subarray(0, HEAD_BYTES);
    const changed = fc
      .array(fc.tuple(fc.nat(HEAD_BYTES - 1), fc.nat(255)), { maxLength: 20 })
      .map((changes) => changes.reduce((bytes, [at, value]) => bytes.with(at, value), qcow2));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), changed), fc.nat(), (bytes, size) => {
        try {
          const { virtualBytes } = parseDiskFormat(bytes, size);
          assert.ok(virtualBytes >= 512 && virtualBytes <= 2048 * 1024 ** 3);
        } catch (error) {
          if (!isError('INVALID_IMAGE')(error)) throw error;
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
