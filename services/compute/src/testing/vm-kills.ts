// The compute node, killed at every point of an instance's life, with a neighbour that must not notice. Run by vm.soak.test.ts.
import assert from 'node:assert/strict';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { run } from '../host/run.ts';
import type { AnnouncedNode } from './real-core.ts';
import { askTiny, createTiny, storeTiny } from './tiny-guest.ts';
import {
  ANSWER_MS,
  isPhase,
  PREFIX,
  playInWorld,
  READY_MS,
  SOON_MS,
  STOP_MS,
  step,
  type VmWorld,
} from './vm-world.ts';
import { until } from './wait.ts';

/** How often the node is killed in each act, each time at another point of it. */
const [, , LAPS = '6'] = process.argv.slice(2);
const OTHER_NODE = { nodeId: 'e'.repeat(64), address: `0x${'e'.repeat(40)}` };

interface Act {
  readonly what: string;
  /** How long it takes on a machine at rest: the node is killed within that. */
  readonly lengthMs: number;
  begin(): Promise<unknown>;
  /** What must be so, once the next process has gone on. */
  settled(): Promise<unknown>;
  /** What the guest's disk may hold then: it depends on how far the act came. Undefined where there is no guest to ask. */
  readonly marks?: readonly string[];
}

/** QEMU processes by the directory of their instance. */
async function listMachines(dataDir: string): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^[0-9]+$/.test(pid)) continue;
    const [directory, program] = await Promise.all(
      ['cwd', 'exe'].map((link) => readlink(`/proc/${pid}/${link}`).catch(() => '')),
    );
    if (program!.includes('qemu-system') && directory!.startsWith(dataDir)) found.push(directory!);
  }
  return found;
}

/** One instance and what is done with it, from its creation until it is forgotten. */
class Life {
  readonly #world: VmWorld;
  readonly #node: AnnouncedNode;
  readonly #image: string;
  #id = '';
  #ipv6 = '';
  /** What was written last, and what the snapshot holds. */
  #mark = 'none';

  constructor(world: VmWorld, node: AnnouncedNode, image: string) {
    this.#world = world;
    this.#node = node;
    this.#image = image;
  }

  get address(): string {
    return this.#ipv6;
  }

  async write(mark: string): Promise<void> {
    await askTiny(this.#ipv6, `echo ${mark} > /root/mark; sync`);
    this.#mark = mark;
  }

  async readMark(): Promise<string> {
    this.#mark = await askTiny(this.#ipv6, 'cat /root/mark 2>/dev/null || echo none');
    return this.#mark;
  }

  get #disk(): string {
    return join(this.#world.dataDir, 'instances', this.#id, 'disk.qcow2');
  }

  /** What the node did not hear, or could not answer, is no fault: only what it is left in is looked at. */
  #ask(path: string, body?: unknown): Promise<unknown> {
    return this.#world.ask('POST', `/control/machine/${this.#id}/${path}`, body).catch(() => {});
  }

  /** What the core node says may be of before the kill: the guest itself is asked. */
  #isRunning = async () => {
    await this.#world.core.until(this.#id, isPhase('running'), READY_MS);
    await until('the guest answers', READY_MS, () =>
      askTiny(this.#ipv6, 'echo here', ANSWER_MS).then(
        (text) => text === 'here',
        () => false,
      ),
    );
  };

  #restartId = '';

  async #isRestarted(): Promise<void> {
    const { core } = this.#world;
    await until('the restart is carried out', READY_MS, async () => {
      const last = (await core.listStatuses(this.#id)).at(-1);
      return last?.phase === 'running' && last.restart_id === this.#restartId;
    });
  }

  async #isGone(): Promise<void> {
    const directory = join(this.#world.dataDir, 'instances', this.#id);
    await until('its directory is put aside', STOP_MS, async () =>
      readdir(directory).then(
        () => false,
        () => true,
      ),
    );
    await until(
      'its tap is gone',
      SOON_MS,
      async () => !(await run('ip', ['-o', 'link'])).includes(this.#id.slice(0, 9)),
    );
  }

  acts(): Act[] {
    const { core } = this.#world;
    const settled = this.#isRunning;
    const same = (mark: string) => [mark];
    return [
      {
        what: 'create',
        lengthMs: 5_000,
        begin: async () => {
          const { instance_id: id, ipv6 } = await createTiny(this.#world, 'life', this.#image, this.#node);
          this.#id = id;
          this.#ipv6 = ipv6;
        },
        settled,
        marks: same('none'),
      },
      {
        what: 'snapshot',
        lengthMs: 400,
        begin: () => this.#ask('snapshots', { name: 'one' }),
        settled,
        marks: same('first'),
      },
      {
        what: 'restart',
        lengthMs: 5_000,
        begin: async () => {
          this.#restartId = await core.control(this.#id, 'restart');
        },
        settled: () => this.#isRestarted(),
        marks: same('first'),
      },
      { what: 'backup', lengthMs: 2_000, begin: () => this.#ask('backup'), settled, marks: same('second') },
      {
        what: 'restore',
        lengthMs: 5_000,
        begin: () => this.#ask('restore', { snapshot: 'one' }),
        settled,
        marks: ['second', 'first'],
      },
      {
        what: 'stop',
        lengthMs: 2_500,
        begin: () => core.control(this.#id, 'stop'),
        settled: async () => {
          await core.until(this.#id, isPhase('stopped'), STOP_MS);
          await run('qemu-img', ['check', '-q', this.#disk]);
        },
      },
      {
        what: 'start',
        lengthMs: 4_000,
        begin: () => core.control(this.#id, 'start'),
        settled,
        marks: ['second', 'first'],
      },
      {
        what: 'reinstall',
        lengthMs: 5_000,
        begin: () => this.#ask('reinstall'),
        settled,
        marks: ['second', 'first', 'none'],
      },
      {
        what: 'move away',
        lengthMs: 2_500,
        begin: () => core.allocate(this.#id, OTHER_NODE, PREFIX),
        settled: () => this.#isGone(),
      },
      {
        what: 'move back',
        lengthMs: 4_000,
        begin: () => core.allocate(this.#id, this.#node, PREFIX),
        settled,
        marks: ['third'],
      },
      {
        what: 'forget',
        lengthMs: 2_500,
        begin: () => core.client.postMessage({ type: 'FORGET', content: { hashes: [this.#id] } }),
        settled: () => this.#isGone(),
      },
    ];
  }
}

async function scenario(world: VmWorld): Promise<void> {
  await world.startNode();
  const node = await world.announced();
  const { instance_id: neighbour, ipv6: theirs } = await createTiny(
    world,
    'neighbour',
    await storeTiny(world),
    node,
  );
  await world.core.until(neighbour, isPhase('running'), READY_MS);
  await askTiny(theirs, 'echo theirs > /root/mark; sync');
  const pid = await world.qemuPid(neighbour);
  const laps = Number(LAPS);
  let kills = 0;
  for (let lap = 0; lap < laps; lap++) {
    const life = new Life(world, node, await storeTiny(world, `lap${lap}`));
    for (const act of life.acts()) {
      const atMs = Math.round((act.lengthMs * (lap + Math.random())) / laps);
      const begun = act.begin();
      await (act.what === 'create' ? begun : Promise.race([begun, delay(atMs)]));
      await delay(atMs);
      await world.killNode();
      kills++;
      await begun;
      await world.startNode();
      await act.settled();
      if (act.marks) {
        const mark = await life.readMark();
        assert.ok(
          act.marks.includes(mark),
          `after ${act.what}, killed at ${atMs} ms, the disk holds ${mark}`,
        );
      }
      if (act.what === 'create') await life.write('first');
      if (act.what === 'restart') await life.write('second');
      if (act.what === 'reinstall') await life.write('third');
      const machines = await listMachines(world.dataDir);
      assert.equal(new Set(machines).size, machines.length, 'no instance has two machines');
      assert.equal(await world.qemuPid(neighbour), pid, 'the neighbour was not started again');
      assert.equal(await askTiny(theirs, 'cat /root/mark'), 'theirs');
      step(`lap ${lap + 1}: ${act.what}, killed after ${atMs} ms: settled`);
    }
  }
  await world.killNode();
  await world.startNode();
  const names = await readdir(world.dataDir, { recursive: true });
  assert.deepEqual(
    names.filter((name) => !name.startsWith('released/') && /\.tmp|\.new$|seed\.iso\./.test(name)),
    [],
    'nothing half done is left',
  );
  assert.match(await readFile(join(world.dataDir, 'instances', neighbour, 'vm.json'), 'utf8'), /"running"/);
  step(`${kills} kills`);
}

await playInWorld(scenario);
