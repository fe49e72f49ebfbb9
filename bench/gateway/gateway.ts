import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { helloWire } from '../../services/gateway/src/tls/testing/hello.ts';
import type { Goal } from '../measure/figure.ts';
import { type Figures, median } from '../measure/figures.ts';
import { cpuSeconds } from '../measure/processor-time.ts';
import { benchQuic } from './quic.ts';
import {
  BARE_RELAY,
  compile,
  INSTANCE_PORT,
  NAMES,
  openNative,
  openPeers,
  openRelay,
  openTypeScript,
  RELAY_PORT,
  type Subject,
  spawnPinned,
} from './subjects.ts';
import { canServeTls, downloadTls, openTlsInstance, TLS_MEGABYTES, type TlsStreams } from './tls-instance.ts';

const ROUNDS = 5;
const TLS_ROUNDS = 3;
const IDLE_CONNECTIONS = 2000;

interface Measure {
  readonly title: string;
  readonly unit: string;
  readonly rounds?: number;
  readonly args: readonly [mode: string, amount: number, parallel: number];
  /** CPU time of the proxy for one unit, in the unit's terms. */
  readonly scale: number;
  /** Of the native plane's CPU time to stock HAProxy's (goalOf). */
  readonly goal?: Goal;
}

const AT_MOST_NINE_TENTHS: Goal = { of: 'median', most: 0.9 };
const STOCK = 'haproxy';
const PEERS = [STOCK, 'haproxy-tuned', 'nginx', 'sniproxy', BARE_RELAY];
/** Of what the least takes that a relay can do, where that is more than the goal: nobody gets below it. */
const OF_THE_LEAST = 0.9;

const MEASURES: readonly Measure[] = [
  {
    title: 'new connection',
    unit: 'µs',
    args: ['conn', 3000, 16],
    scale: 1e6 / 3000,
    goal: AT_MOST_NINE_TENTHS,
  },
  {
    title: 'small exchange, 1 connection',
    unit: 'µs',
    args: ['ping', 4000, 1],
    scale: 1e6 / 4000,
    goal: AT_MOST_NINE_TENTHS,
  },
  {
    title: 'small exchange, 64 connections',
    unit: 'µs',
    args: ['ping', 20_000, 64],
    scale: 1e6 / 20_000,
    goal: AT_MOST_NINE_TENTHS,
  },
  { title: 'download, 1 stream', unit: 's/GB', args: ['down', 500, 1], scale: 1 / 0.5 },
  { title: 'download, 32 streams', unit: 's/GB', args: ['down', 500, 32], scale: 1 / 0.5 },
];

interface Load {
  readonly p50Us: number;
  readonly p99Us: number;
  readonly cpu: number;
}

async function load(path: string, subject: Subject, args: readonly (string | number)[]): Promise<Load> {
  const before = cpuSeconds(subject.pids);
  const child = spawnPinned(
    1,
    path,
    [...args.slice(0, 1), subject.port, ...args.slice(1), NAMES].map(String),
  );
  let said = '';
  child.stdout!.on('data', (chunk) => {
    said += chunk;
  });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`${subject.name}: ${args.join(' ')} failed`);
  const [, , p50Us = 0, p99Us = 0] = said.split(' ').map(Number);
  return { p50Us, p99Us, cpu: cpuSeconds(subject.pids) - before };
}

async function compare(
  figures: Figures,
  path: string,
  subjects: readonly Subject[],
  measure: Measure,
): Promise<void> {
  await compareLoads(figures, subjects, measure, (subject) => load(path, subject, measure.args));
}

/** Downloads with real TLS; the last byte is what counts, so there are no times of single exchanges. */
async function compareTls(
  figures: Figures,
  subjects: readonly Subject[],
  streams: TlsStreams,
): Promise<void> {
  const title = `${TLS_TITLE}, ${streams} stream${streams > 1 ? 's' : ''}`;
  await compareLoads(
    figures,
    subjects,
    { title, unit: 's/GB', rounds: TLS_ROUNDS, scale: 1000 / TLS_MEGABYTES[streams] },
    async (subject) => {
      const before = cpuSeconds(subject.pids);
      const startMs = performance.now();
      await downloadTls(subject, streams);
      const us = (performance.now() - startMs) * 1000;
      return { p50Us: us, p99Us: us, cpu: cpuSeconds(subject.pids) - before };
    },
  );
}

/** The goal against stock HAProxy, or so much of what a bare relay takes. */
function goalOf(
  subjects: readonly Subject[],
  loads: readonly (readonly Load[])[],
  { goal }: Pick<Measure, 'goal'>,
): Goal | undefined {
  const of = (wanted: string) => loads[subjects.findIndex(({ name }) => name === wanted)];
  const [bare, stock] = [of(BARE_RELAY), of(STOCK)];
  if (goal?.most === undefined || !bare || !stock) return goal;
  const least = median(bare.map((one, round) => one.cpu / stock[round]!.cpu));
  return { ...goal, most: Math.max(goal.most, least / OF_THE_LEAST) };
}

/** Every subject in turn, in another order each round. The first round is for caches and compilers, and is not counted. */
async function compareLoads(
  figures: Figures,
  subjects: readonly Subject[],
  measure: Omit<Measure, 'args'>,
  run: (subject: Subject) => Promise<Load>,
): Promise<void> {
  const loads = subjects.map((): Load[] => []);
  for (let round = 0; round <= (measure.rounds ?? ROUNDS); round++) {
    for (let i = 0; i < subjects.length; i++) {
      const index = (i + round) % subjects.length;
      const one = await run(subjects[index]!);
      if (round > 0) loads[index]!.push(one);
    }
  }
  figures.group(measure.title);
  const goal = goalOf(subjects, loads, measure);
  for (const [index, { name }] of subjects.entries()) {
    const mine = loads[index]!;
    figures.add(
      `${name}, CPU time of the proxy`,
      measure.unit,
      mine.map(({ cpu }) => cpu * measure.scale),
    );
    const [p50, p99] = [mine.map(({ p50Us }) => p50Us), mine.map(({ p99Us }) => p99Us)];
    figures.add(`${name}, p50 of exchanges`, 'µs', p50);
    figures.add(`${name}, p99 of exchanges`, 'µs', p99);
    for (const [at, peer] of subjects.entries()) {
      if (at === index || !PEERS.includes(peer.name)) continue;
      const ratios = mine.map((one, round) => one.cpu / loads[at]![round]!.cpu);
      const isGoal = name === 'native' && peer.name === STOCK;
      figures.add(`${name}, CPU time to ${peer.name}`, '', ratios, { goal: isGoal ? goal : undefined });
    }
  }
}

const residentBytes = (pid: number) =>
  Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096;

async function openIdle(port: number): Promise<Socket[]> {
  const opened: Socket[] = [];
  for (let index = 0; index < IDLE_CONNECTIONS; index++) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    // The instance of this bench answers to 517 bytes.
    const hello = helloWire({ serverName: 'h1.raw.test' });
    const rest = 517 - hello.length;
    socket.write(Buffer.concat([hello, Buffer.alloc(rest)]));
    await once(socket, 'data');
    opened.push(socket);
  }
  return opened;
}

async function measureIdle(figures: Figures, subjects: readonly Subject[]): Promise<void> {
  figures.group(`resident memory of each of ${IDLE_CONNECTIONS} idle connections that did one exchange`);
  for (const { name, port, pids } of subjects) {
    const warm = await openIdle(port);
    const before = residentBytes(pids[0]!);
    const more = await openIdle(port);
    const bytes = (residentBytes(pids[0]!) - before) / IDLE_CONNECTIONS;
    for (const socket of [...warm, ...more]) socket.destroy();
    figures.add(name, 'bytes', bytes);
  }
}

const BUSY_TITLE = 'busy JavaScript';
const IDLE_TITLE = 'idle memory';
const TLS_TITLE = 'TLS records';
const QUIC_TITLE = 'quic';
const BUSY_MS = 30;
const PERIOD_MS = 100;

function busy(): NodeJS.Timeout {
  return setInterval(() => {
    const end = performance.now() + BUSY_MS;
    while (performance.now() < end);
  }, PERIOD_MS);
}

async function measureBusy(figures: Figures, path: string, subjects: readonly Subject[]): Promise<void> {
  // The native plane belongs to this thread.
  figures.group(`new connections while the JavaScript thread is busy ${BUSY_MS} of ${PERIOD_MS} ms`);
  for (const subject of subjects) {
    const timer = busy();
    const results: Load[] = [];
    for (let round = 0; round < ROUNDS; round++) results.push(await load(path, subject, ['conn', 2000, 4]));
    clearInterval(timer);
    const [p50, p99] = [results.map(({ p50Us }) => p50Us), results.map(({ p99Us }) => p99Us)];
    figures.add(`${subject.name}, p50`, 'µs', p50);
    figures.add(`${subject.name}, p99`, 'µs', p99);
  }
}

/** `npm run bench -- gateway [PART OF A TITLE]`: the data planes beside HAProxy, nginx and sniproxy, as far as those are installed. */
export async function benchGateway(figures: Figures, [wanted = '']: readonly string[]): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-bench-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  if (QUIC_TITLE.includes(wanted)) await benchQuic(figures, dir);
  if (wanted === QUIC_TITLE) return;
  const path = compile('load.c', join(dir, 'load'));
  const instance = spawnPinned(1, path, ['serve', String(INSTANCE_PORT)]);
  stack.defer(() => void instance.kill('SIGKILL'));
  await once(instance.stdout!, 'data');
  const peers = (await openPeers(dir, figures)).map((one) => stack.use(one));
  const native = stack.use(await openNative(dir));
  const large = stack.use(await openNative(dir, { routes: 1_000_000, name: 'native-1M' }));
  const typescript = stack.use(await openTypeScript());
  const relay = stack.use(await openRelay(dir, 'relay.c', RELAY_PORT));
  const all = [...peers, relay, native, typescript];
  for (const measure of MEASURES.filter(({ title }) => title.includes(wanted))) {
    const isConnection = measure.args[0] === 'conn';
    await compare(figures, path, isConnection ? [...all, large] : all, measure);
  }
  if (BUSY_TITLE.includes(wanted))
    await measureBusy(figures, path, [...peers.filter(({ name }) => name === STOCK), native]);
  if (IDLE_TITLE.includes(wanted)) await measureIdle(figures, all);
  if (!TLS_TITLE.includes(wanted)) return;
  if (!canServeTls()) {
    figures.lack(`nginx as the instance of "${TLS_TITLE}"`);
    return;
  }
  instance.kill('SIGKILL');
  await once(instance, 'exit');
  await using _tls = await openTlsInstance(dir);
  for (const streams of [1, 32] as const) await compareTls(figures, all, streams);
}
