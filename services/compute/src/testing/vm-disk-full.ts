// The host's disk full at every point where something is written, on a small disk of its own. Run by vm.soak.test.ts.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { readDiskUsage } from '../host/capacity.ts';
import { run } from '../host/run.ts';
import { CodeFiles } from '../programs/code/files.ts';
import { openCache } from './play.ts';
import { askTiny, createTiny, storeTiny } from './tiny-guest.ts';
import { isPhase, READY_MS, SOON_MS, STOP_MS, step, VmWorld } from './vm-world.ts';
import { until } from './wait.ts';

const [cacheDir = ''] = process.argv.slice(2);
const MIB = 1024 * 1024;
const DISK_MIB = 5 * 1024;
const RANDOM_BYTES = 96 * MIB;

/** A file system in a file, in the mount namespace of this process, with a ballast that leaves as little free as is wanted. */
class SmallDisk implements AsyncDisposable {
  readonly path: string;
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
    this.path = join(directory, 'mounted');
  }

  static async mount(): Promise<SmallDisk> {
    const disk = new SmallDisk(await mkdtemp(join(tmpdir(), 'skerry-full-')));
    await mkdir(disk.path);
    const file = join(disk.#directory, 'disk.ext4');
    // Nothing is kept back for root, who all of this runs as.
    await run('mke2fs', ['-q', '-t', 'ext4', '-m', '0', file, `${DISK_MIB}M`]);
    await run('mount', ['-o', 'loop', file, disk.path]);
    return disk;
  }

  get #ballast(): string {
    return join(this.path, 'ballast');
  }

  async free(): Promise<void> {
    await rm(this.#ballast, { force: true });
  }

  async leave(mib: number): Promise<void> {
    await this.free();
    const { availableBytes } = await readDiskUsage(this.path);
    await run('fallocate', ['-l', `${availableBytes - mib * MIB}`, this.#ballast]);
  }

  /** To the last block: what a guest writes comes in larger pieces than a record. */
  async fill(): Promise<void> {
    await run('sh', ['-c', 'cat /dev/zero >> "$0" 2>/dev/null || true', join(this.path, 'filler')]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await run('umount', ['-l', this.path]);
    await rm(this.#directory, { recursive: true, force: true });
  }
}

const isFull = (view: { reason: { code: string } | null }) => view.reason?.code === 'STORAGE_FULL';

async function scenario(world: VmWorld, disk: SmallDisk): Promise<void> {
  const { core } = world;
  await world.startNode();
  const node = await world.announced();
  const tiny = await storeTiny(world);
  const running = (id: string) => core.until(id, isPhase('running'), READY_MS);
  const { instance_id: neighbour, ipv6: theirs } = await createTiny(world, 'neighbour', tiny, node);
  await running(neighbour);
  await askTiny(theirs, 'echo theirs > /root/mark; sync');
  const checkNeighbour = async () => assert.equal(await askTiny(theirs, 'cat /root/mark'), 'theirs');

  step('no room to make a disk of an image');
  const image = await storeTiny(world, 'large', randomBytes(RANDOM_BYTES));
  await disk.leave(1_024 + 150);
  const large = await createTiny(world, 'large', image, node);
  const refused = await core.until(large.instance_id, isFull, READY_MS);
  assert.equal(refused.phase, 'preparing');
  assert.match(refused.reason?.message ?? '', /the disk needs [0-9]+ bytes, but only/);
  await checkNeighbour();
  await disk.free();
  await running(large.instance_id);

  step('no room for the disk of an instance');
  await disk.leave(512);
  const late = await createTiny(world, 'late', tiny, node);
  assert.equal((await core.until(late.instance_id, isFull, READY_MS)).phase, 'preparing');
  await checkNeighbour();
  await disk.free();
  await running(late.instance_id);

  step('a guest writes more than there is: it waits, and so does nobody else');
  await disk.leave(64);
  const writes =
    'dd if=/dev/urandom of=/root/big bs=1M count=200 2>/dev/null; sync; sha256sum /root/big > /root/sum; sync';
  await askTiny(late.ipv6, `(${writes}) >/dev/null 2>&1 </dev/null &`);
  const stalled = await core.until(late.instance_id, isFull, READY_MS);
  assert.equal(stalled.phase, 'running');
  await disk.fill();
  await checkNeighbour();
  assert.equal((await core.get(neighbour)).phase, 'running');

  step(
    'not a byte is left: a stop is carried out and told, a new instance waits, code of programs is still had',
  );
  await core.control(neighbour, 'stop');
  await core.until(neighbour, isPhase('stopped'), STOP_MS);
  const unkept = await createTiny(world, 'unkept', tiny, node);
  await core.until(unkept.instance_id, isFull, READY_MS);
  const code = randomBytes(MIB);
  const file = createHash('sha256').update(code).digest('hex');
  await core.client.storeFile(new Blob([code as BlobPart]), 'code', file);
  assert.deepEqual(await new CodeFiles(core.client, join(disk.path, 'code')).read(file), code);

  step('kill -9 of the node with the disk full: the next process takes over what runs');
  const pid = await world.qemuPid(large.instance_id);
  await world.killNode();
  await world.startNode();
  assert.equal(await world.qemuPid(large.instance_id), pid);
  assert.equal(await askTiny(large.ipv6, 'echo here'), 'here');

  step('room again: everything goes on by itself');
  await rm(join(disk.path, 'filler'));
  await disk.free();
  await until('the guest wrote all it wanted', READY_MS, async () =>
    (await askTiny(late.ipv6, 'cat /root/sum 2>/dev/null').catch(() => '')).includes('/root/big'),
  );
  const [told, is] = [
    await askTiny(late.ipv6, 'cat /root/sum'),
    await askTiny(late.ipv6, 'sha256sum /root/big', READY_MS),
  ];
  assert.equal(is, told, 'what was written while the disk was full is what was meant');
  await core.until(late.instance_id, (view) => view.reason === null, SOON_MS);
  await running(unkept.instance_id);
  await core.control(neighbour, 'start');
  await running(neighbour);
  await checkNeighbour();
  for (const id of [neighbour, large.instance_id, late.instance_id, unkept.instance_id]) {
    await core.control(id, 'stop');
    await core.until(id, isPhase('stopped'), STOP_MS);
    await run('qemu-img', ['check', '-q', join(world.dataDir, 'instances', id, 'disk.qcow2')]);
  }
}

try {
  await using disk = await SmallDisk.mount();
  const from = (await openCache(cacheDir).ensure('debian:12', () => {})).directory;
  const cache = join(disk.path, 'cache');
  await mkdir(join(cache, 'images'), { recursive: true });
  await cp(from, join(cache, 'images', basename(from)), { recursive: true });
  await using world = await VmWorld.start(cache, {
    dataRoot: disk.path,
    // More than there is: what is promised is not what this is about.
    settings: { SKERRY_COMPUTE_DISK_GIB: '64' },
  });
  await scenario(world, disk);
  step('done');
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
