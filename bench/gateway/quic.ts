import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NativeDataPlane } from '../../services/gateway/src/dataplane/native/plane.ts';
import { cryptoFrame, initialDatagram } from '../../services/gateway/src/quic/testing/initials.ts';
import { FLIGHT_SOURCES } from '../../services/gateway/src/quic/testing/native-reader.ts';
import { REAL_FLIGHTS } from '../../services/gateway/src/quic/testing/real-flights.ts';
import { helloMessage } from '../../services/gateway/src/tls/testing/hello.ts';
import type { Goal } from '../measure/figure.ts';
import { type Figures, quantile } from '../measure/figures.ts';
import { cpuSeconds } from '../measure/processor-time.ts';
import {
  compile,
  INSTANCE_PORT,
  isThere,
  openNative,
  openRelay,
  RELAY_PORT,
  type Subject,
  spawnPinned,
} from './subjects.ts';

const ROUNDS = 5;
const MEGABYTES = 300;
const READINGS = 2_000;
const FIRST_ROUNDS = 250;
const FIRST_TURNS = 8;
const IDLE_FLOWS = 1_000;
/** Of one client socket; the gateway takes 64. */
const FLOWS_PER_SOCKET = 50;
const REFUSAL_MS = 300;
const DELAY_MS = 1;

const NGINX = '/usr/sbin/nginx';
const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so';

const NAME = 'h1.raw.test';
const datagramFor = (serverName: string, more: { destination?: Uint8Array } = {}) =>
  initialDatagram([cryptoFrame(0, helloMessage({ serverName }))], more);
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** What the load generator prints, which runs beside the instance. */
async function run(path: string, args: readonly (string | number)[]): Promise<number[]> {
  const child = spawnPinned(1, path, args.map(String));
  let said = '';
  child.stdout!.on('data', (chunk) => {
    said += chunk;
  });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`${args[0]} failed`);
  return said.trim().split('\n').map(Number);
}

const nginxConfig = (port: number, dir: string) => `
load_module ${STREAM_MODULE};
daemon off; master_process off; worker_processes 1; pid ${dir}/nginx-udp.pid; error_log ${dir}/nginx-udp.err warn;
events { worker_connections 4096; multi_accept on; use epoll; }
stream { server { listen 127.0.0.1:${port} udp; proxy_pass [::1]:${INSTANCE_PORT}; proxy_timeout 60s; } }
`;

const NGINX_PORT = 18_106;

async function openNginx(dir: string): Promise<Subject> {
  const path = join(dir, 'nginx-udp.conf');
  await writeFile(path, nginxConfig(NGINX_PORT, dir));
  // The client greets until it is answered, so nobody waits here.
  const child = spawnPinned(0, NGINX, ['-c', path, '-e', `${dir}/nginx-udp.err`]);
  return {
    ...{ name: 'nginx', port: NGINX_PORT, pids: [child.pid!] },
    async [Symbol.asyncDispose]() {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

interface Transfer {
  readonly title: string;
  readonly direction: 'down' | 'up';
  /** Whether the sender joins datagrams for the kernel (GSO). */
  readonly isJoined: boolean;
  readonly goal?: Goal;
}

const TRANSFERS: readonly Transfer[] = [
  {
    ...{ title: 'QUIC download, single datagrams', direction: 'down', isJoined: false },
    goal: { of: 'median', most: 0.72 },
  },
  {
    ...{ title: 'QUIC download, the sender uses GSO', direction: 'down', isJoined: true },
    goal: { of: 'median', most: 0.25 },
  },
  { title: 'QUIC upload, single datagrams', direction: 'up', isJoined: false },
  { title: 'QUIC upload, the sender uses GSO', direction: 'up', isJoined: true },
];

async function compareTransfers(figures: Figures, load: string, subjects: readonly Subject[]): Promise<void> {
  for (const { title, direction, isJoined, goal } of TRANSFERS) {
    const perGb = subjects.map((): number[] => []);
    for (let round = 0; round <= ROUNDS; round++) {
      for (const [index, { port, pids }] of subjects.entries()) {
        const before = cpuSeconds(pids);
        await run(load, [direction, port, hexOf(datagramFor(NAME)), MEGABYTES, isJoined ? 1 : 0]);
        // The first round is for caches.
        if (round > 0) perGb[index]!.push((cpuSeconds(pids) - before) / (MEGABYTES / 1000));
      }
    }
    figures.group(title);
    for (const [index, { name }] of subjects.entries())
      figures.add(`${name}, CPU time of the proxy`, 's/GB', perGb[index]!);
    const [native = [], nginx] = perGb;
    const ratios = nginx && native.map((seconds, round) => seconds / nginx[round]!);
    if (ratios) figures.add('native, CPU time to nginx', '', ratios, goal ? { goal } : {});
  }
}

/** With a tag that does not authenticate. */
const junk = (bytes: Uint8Array) => bytes.map((byte, at) => (at === bytes.length - 1 ? byte ^ 1 : byte));

function measureReading(figures: Figures, dir: string): void {
  const program_ = compile('quic-read.c', join(dir, 'quic-read'), FLIGHT_SOURCES);
  const real = REAL_FLIGHTS[0]!;
  const cases = [
    { what: `the first flight of ${real.client}, post-quantum`, datagrams: real.datagrams, most: 40 },
    { what: 'an Initial packet that does not authenticate', datagrams: [junk(real.datagrams[0]!)], most: 25 },
  ];
  figures.group('CPU time of reading');
  for (const { what, datagrams, most } of cases) {
    const input = Buffer.concat(
      datagrams.flatMap((wire) => [Buffer.from(Uint32Array.of(wire.length).buffer), Buffer.from(wire)]),
    );
    const times = Array.from({ length: ROUNDS }, () =>
      Number(String(execFileSync(program_, [String(READINGS)], { input }))),
    );
    figures.add(what, 'µs', times, { goal: { of: 'median', most } });
  }
}

const inMs = (microseconds: readonly number[]) => microseconds.map((one) => one / 1000);

async function measureFirst(
  figures: Figures,
  load: string,
  { native, relay }: { native: Subject; relay: Subject },
): Promise<void> {
  const ask = async (name: string, at: number) =>
    inMs(await run(load, ['first', at, hexOf(datagramFor(name)), FIRST_ROUNDS]));
  const times = { direct: [] as number[], 'bare relay': [] as number[], native: [] as number[] };
  // In turns: what else the machine does meets all of them.
  for (let turn = 0; turn < FIRST_TURNS; turn++) {
    times.direct.push(...(await ask(NAME, -INSTANCE_PORT)));
    times['bare relay'].push(...(await ask(NAME, relay.port)));
    times.native.push(...(await ask(NAME, native.port)));
  }
  figures.group('from the first datagram to its answer');
  for (const [what, taken] of Object.entries(times)) figures.addTimes(what, taken);
  const at = (part: number) => {
    const [direct, bare, own] = Object.values(times).map((taken) => quantile(taken, part));
    return { more: own! - direct!, toBare: own! / bare! };
  };
  figures.add('native, more than direct, p50', 'ms', at(0.5).more);
  figures.add('native, more than direct, p99', 'ms', at(0.99).more, {
    goal: { of: 'median', most: DELAY_MS },
  });
  figures.add('native to the bare relay, p50', '', at(0.5).toBare);
  figures.add('native to the bare relay, p99', '', at(0.99).toBare);
  const unknown = await ask('nobody.raw.test', native.port);
  figures.addTimes('native, refusal of an unknown name', unknown, { goal: { of: 'p99', most: REFUSAL_MS } });
}

/** Flows whose clients have shown that they are there, and say nothing more. */
async function openIdle(port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let number = 0; number < count; number++) {
    if (number % FLOWS_PER_SOCKET === 0) {
      const socket = createSocket('udp4').bind(0, '127.0.0.1');
      await once(socket, 'listening');
      sockets.push(socket);
    }
    const socket = sockets.at(-1)!;
    const destination = new Uint8Array(8);
    new DataView(destination.buffer).setUint32(0, number);
    socket.send(datagramFor(NAME, { destination }), port, '127.0.0.1');
    const [answer] = (await once(socket, 'message')) as [Buffer];
    // A short header with the id that the instance chose.
    socket.send(Buffer.concat([Buffer.of(0x41), answer.subarray(7, 15)]), port, '127.0.0.1');
  }
  return sockets;
}

async function measureIdle(figures: Figures, { port, plane }: Subject): Promise<void> {
  if (!(plane instanceof NativeDataPlane)) throw new Error('only the native plane counts what flows take');
  const [bytesBefore, before] = [plane.connectionBytes, plane.stats().quic.figures.quicOpen];
  const sockets = await openIdle(port, IDLE_FLOWS);
  const opened = plane.stats().quic.figures.quicOpen - before;
  figures.group('memory of the native plane');
  figures.add(`an idle flow, of ${opened}`, 'bytes', (plane.connectionBytes - bytesBefore) / opened, {
    goal: { of: 'median', most: 400 },
  });
  for (const socket of sockets) socket.close();
}

/** QUIC through the native plane, beside nginx's `stream` module, which forwards datagrams without looking. */
export async function benchQuic(figures: Figures, dir: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const load = compile('quic-load.c', join(dir, 'quic-load'));
  measureReading(figures, dir);
  const instance = spawnPinned(1, load, ['serve', String(INSTANCE_PORT)]);
  stack.defer(() => void instance.kill('SIGKILL'));
  await once(instance.stdout!, 'data');
  const native = stack.use(await openNative(dir, { name: 'native', quic: 'yes' }));
  await measureIdle(figures, native);
  await measureFirst(figures, load, {
    native,
    relay: stack.use(await openRelay(dir, 'quic-relay.c', RELAY_PORT)),
  });
  const hasNginx = isThere(NGINX);
  if (!hasNginx) figures.lack('nginx with its module stream, the peer of QUIC downloads and uploads');
  const subjects = hasNginx ? [native, stack.use(await openNginx(dir))] : [native];
  await compareTransfers(figures, load, subjects);
}
