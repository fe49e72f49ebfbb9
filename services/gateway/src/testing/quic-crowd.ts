import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput, endProcess } from '@skerry/kit/testing/processes';
import { buildProgram } from '../dataplane/native/build.ts';
import { NativeDataPlane } from '../dataplane/native/plane.ts';
import { builtForTests, TEST_CACHE } from '../dataplane/native/testing/built.ts';
import { Datagrams } from '../dataplane/native/testing/datagrams.ts';
import { NAME_A, NAME_B, openWorld, until } from '../dataplane/testing/suite/world.ts';
import { readPacket, VERSION_1 } from '../quic/packet.ts';
import { cryptoFrame, initialDatagram, longHead, varint } from '../quic/testing/initials.ts';
import { helloMessage, joined } from '../tls/testing/hello.ts';

const SOURCE = fileURLToPath(new URL('../quic/testing/crowd.c', import.meta.url));
const USAGE_EXIT_CODE = 2;
/** As many flows as may be without a name, with what each holds, and those that are not proven. */
const MOST_BYTES = 48 * 1024 * 1024;
const MOST_FLOWS = 1024 + 4096 + 10;
const REPEAT_MS = 300;
/** So slowly that one address has not too many. */
const BETWEEN_MS = 10;
const HONEST_BEFORE = 300;
/** The kernel may refuse to send one now and then. */
const LEAST_SENT = 0.99;

/** What the honest instance says: a long header, with an id of its own. */
function answerOf(hello: Uint8Array): Uint8Array {
  const packet = readPacket(hello);
  assert.ok(packet.type === 'initial');
  const rest = new Uint8Array(60);
  const own = joined(packet.destination, Uint8Array.of(7));
  return joined(longHead(0xe0, VERSION_1, packet.source, own), varint(rest.length), rest);
}

const NINE = new Uint8Array(8).fill(9);

/** By what the crowd sends. Each is the same datagram over and over: a flow is known by where it comes from, too. */
const CROWDS: Readonly<Record<string, Uint8Array>> = {
  'hellos for an instance that says nothing': initialDatagram([
    cryptoFrame(0, helloMessage({ serverName: NAME_B })),
  ]),
  'half-open hellos': initialDatagram([cryptoFrame(5, new Uint8Array(9))]),
  'packets that do not authenticate': initialDatagram([], { keysOf: NINE }),
  'hellos for nobody': initialDatagram([cryptoFrame(0, helloMessage({ serverName: 'nobody.example' }))]),
};

/** A client that repeats its hello until it is answered. Resolves with the milliseconds that it took. */
async function connectOnce(client: Datagrams, port: number, number: number): Promise<number> {
  const destination = new Uint8Array(8);
  new DataView(destination.buffer).setUint32(0, number);
  const hello = initialDatagram([cryptoFrame(0, helloMessage({ serverName: NAME_A }))], { destination });
  const isAnswer = (bytes: Uint8Array) => {
    const packet = readPacket(bytes);
    return packet.type === 'handshake' && Buffer.from(packet.source.subarray(0, -1)).equals(destination);
  };
  const startMs = performance.now();
  client.send(hello, port, '127.0.0.1');
  const repeats = setInterval(() => client.send(hello, port, '127.0.0.1'), REPEAT_MS);
  try {
    await client.heardOne(isAnswer);
  } finally {
    clearInterval(repeats);
  }
  return performance.now() - startMs;
}

/** An instance that reads nothing: what this process would read for it, the honest clients of this process would wait for. */
async function openSilent(host: string, port: number): Promise<AsyncDisposable> {
  const bind = `require('node:dgram').createSocket('udp4').bind(${port}, '${host}', () => console.log('bound'))`;
  const child = spawn(process.execPath, ['-e', bind], { stdio: ['ignore', 'pipe', 'pipe'] });
  await awaitOutput(child, 'the silent instance', hear(child, ['stderr']));
  child.kill('SIGSTOP');
  return { [Symbol.asyncDispose]: () => endProcess(child, 'SIGKILL') };
}

const TICKS_PER_SECOND = 100;

/** Seconds of processor time that a process has taken. */
function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

const quantile = (times: readonly number[], part: number) =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * part)]!.toFixed(2);

/** What is done while the crowd sends, and how many datagrams it sent. It is ended with whatever is done beside it. */
async function besideCrowd(
  path: string,
  args: readonly string[],
  datagram: Uint8Array,
  meanwhile: (isOver: () => boolean) => Promise<number[]>,
): Promise<{ readonly sent: number; readonly times: readonly number[] }> {
  const crowd = spawn(path, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  await using _end = { [Symbol.asyncDispose]: () => endProcess(crowd, 'SIGKILL') };
  crowd.stdin.end(datagram);
  const said = text(crowd.stdout);
  let isOver = false;
  const ended = once(crowd, 'close').finally(() => {
    isOver = true;
  });
  const times = await meanwhile(() => isOver);
  const [code] = (await ended) as [number | null];
  assert.equal(code, 0, 'the crowd ended well');
  return { sent: Number(await said), times };
}

/**
 * Crowds from a whole network of addresses against the native plane, while honest clients go on connecting: what it holds stays
 * bounded, everybody honest gets through, and nothing is left behind.
 */
export async function checkQuicCrowd(
  count: number,
  perSecond: number,
  say: (line: string) => void,
): Promise<void> {
  const built = await buildProgram(
    { name: 'quic-crowd', sources: [SOURCE], idleExitCode: USAGE_EXIT_CODE },
    TEST_CACHE,
  );
  assert.ok('path' in built);
  const path = await builtForTests();
  let plane: NativeDataPlane | undefined;
  await using world = await openWorld((options) => {
    const onTrouble = (details: object, text: string) => assert.fail(`${text} ${JSON.stringify(details)}`);
    plane = new NativeDataPlane({ ...options, path, quic: 'yes', onTrouble });
    return plane;
  });
  await using instance = await Datagrams.open('::1', world.upstreamHttpsPort);
  await using _silent = await openSilent('127.0.0.2', world.upstreamHttpsPort);
  instance.answer(answerOf);
  let number = 0;
  const honest = async (isOver: (times: readonly number[]) => boolean) => {
    const times: number[] = [];
    while (!isOver(times)) {
      await using client = await Datagrams.open('127.0.0.1');
      times.push(await connectOnce(client, world.ports.https, number++));
      instance.heard.length = 0;
      await pause(BETWEEN_MS);
    }
    return times;
  };
  const alone = await honest((times) => times.length === HONEST_BEFORE);
  say(`alone: ${alone.length} connections, p50 ${quantile(alone, 0.5)} ms, p99 ${quantile(alone, 0.99)} ms`);
  for (const [what, datagram] of Object.entries(CROWDS)) {
    const before = cpuSecondsOf(plane!.pid!);
    let [bytes, flows] = [0, 0];
    const args = [world.ports.https, count, perSecond].map(String);
    const { sent, times } = await besideCrowd(built.path, args, datagram, (isOver) =>
      honest(() => {
        bytes = Math.max(bytes, plane!.connectionBytes);
        flows = Math.max(flows, plane!.stats().quic.figures.quicOpen);
        return isOver();
      }),
    );
    say(
      `${sent} ${what}: ${times.length} honest connections, p50 ${quantile(times, 0.5)} ms, ` +
        `p99 ${quantile(times, 0.99)} ms; ${(cpuSecondsOf(plane!.pid!) - before).toFixed(1)} s of CPU in the plane; ` +
        `at most ${(bytes / 2 ** 20).toFixed(1)} MiB, ${flows} flows`,
    );
    assert.ok(bytes <= MOST_BYTES, `${bytes} bytes`);
    assert.ok(flows <= MOST_FLOWS, `${flows} flows`);
    assert.ok(times.length > 0);
    assert.ok(sent >= LEAST_SENT * count, `${sent} of ${count} were sent`);
  }
  await until(() => plane!.connectionBytes === 0);
  say('nothing is left');
}
