import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { createBodies } from '../data-set/signed-bodies.ts';
import { DURABLE, startDurableServer } from '../measure/durable-server.ts';
import { type Figures, quantile, tell } from '../measure/figures.ts';
import { readBeside } from '../measure/read-beside.ts';
import { benchCommits } from './commits.ts';
import { post, postAll, readMessage, spend } from './load.ts';
import { Processes, startBare } from './nodes.ts';

const log = createLogger('bench', 'error');

const ROUNDS = { reads: 7, ingest: 3 };
const FILLED = 1_000;
const SENDERS = 64;
const MESSAGES = 1_000;
const READERS = 50;
const READ_EVERY_MS = 100;
const RATE = 500;
const SECONDS = 4;
/** Processes that stood still have missed their timers. */
const WARM_SECONDS = 1;
/** Before the first round: a node that is new compiles what it runs often, and its native code. */
const FIRST_WARM_SECONDS = 12;
const READ_GOAL_MS = 5;
const ALL = 'answer,write,deliver,index';
const REST = 'write,deliver,index';

interface Subject {
  readonly name: string;
  readonly urls: readonly string[];
  /** Stand still while it is another one's turn. */
  readonly processes?: Processes;
}

interface Readable extends Subject {
  /** Of what it has. */
  readonly hashes: readonly string[];
}

/** One round of all subjects, another one first each time; the first round warms up and is thrown away. */
async function inTurns<S extends Subject, T>(
  rounds: number,
  subjects: readonly S[],
  run: (subject: S, tag: string, isFirst: boolean) => Promise<T>,
) {
  const found = subjects.map((): T[] => []);
  for (let round = 0; round <= rounds; round++) {
    for (let i = 0; i < subjects.length; i++) {
      const index = (i + round) % subjects.length;
      const subject = subjects[index]!;
      await subject.processes?.resume();
      const one = await run(subject, `${round}-${index}-${subjects.length}`, round === 0);
      subject.processes?.pause();
      if (round > 0) found[index]!.push(one);
    }
    tell(`round ${round} of ${rounds}`);
  }
  return found;
}

async function benchReads(figures: Figures, subjects: readonly Readable[]): Promise<void> {
  const found = await inTurns(ROUNDS.reads, subjects, async ({ urls, hashes }, tag, isFirst) => {
    const urlOf = (index: number) => urls[index % urls.length]!;
    const run = (bodies: readonly Buffer[]) =>
      readBeside(
        { bodies, rate: RATE, write: (body, index) => post(urlOf(index), body) },
        {
          readers: READERS,
          everyMs: READ_EVERY_MS,
          read: (index) => readMessage(urlOf(index), hashes[index % hashes.length]!),
        },
      );
    const bodies = createBodies(RATE * SECONDS, `reads-${tag}`);
    await run(createBodies(RATE * (isFirst ? FIRST_WARM_SECONDS : WARM_SECONDS), `warm-${tag}`));
    let timesMs: number[] = [];
    const spent = await spend(async () => {
      ({ timesMs } = await run(bodies));
    });
    return { ...spent, timesMs, count: bodies.length };
  });
  figures.group(
    `${READERS} readers, each asking for a message by hash every ${READ_EVERY_MS} ms, while ${RATE} messages a second are sent`,
  );
  const [first] = subjects;
  subjects.forEach(({ name }, index) => {
    const rounds = found[index]!;
    const toFirst = (pick: (one: (typeof rounds)[number]) => number) => ({
      to: `the same of ${first!.name}`,
      values: rounds.map((one, round) => pick(one) / pick(found[0]![round]!)),
    });
    const p99 = ({ timesMs }: { timesMs: readonly number[] }) => quantile(timesMs, 0.99);
    const cpuOf = ({ cpu, count }: { cpu: number; count: number }) => (cpu / count) * 1e3;
    figures.addTimes(
      `${name}: a read`,
      rounds.flatMap(({ timesMs }) => timesMs),
      { ratio: toFirst(p99), goal: { of: 'p99', most: READ_GOAL_MS } },
    );
    // One stillness of the machine is among the slowest of all reads, but only of one round.
    figures.add(`${name}: p99 of a round's reads`, 'ms', rounds.map(p99), {
      goal: { of: 'median', most: READ_GOAL_MS },
    });
    figures.add(
      `${name}: messages taken`,
      '/s',
      rounds.map(({ count, seconds }) => count / seconds),
    );
    figures.add(
      `${name}: CPU time of all servers for a message and the reads meanwhile`,
      'ms',
      rounds.map(cpuOf),
      { ratio: toFirst(cpuOf) },
    );
  });
}

async function benchIngest(figures: Figures, subjects: readonly Subject[]): Promise<void> {
  const found = await inTurns(ROUNDS.ingest, subjects, async ({ urls }, tag) => {
    const bodies = createBodies(MESSAGES, `ingest-${tag}`);
    return spend(() => postAll(urls, bodies, SENDERS));
  });
  figures.group(`${MESSAGES} messages over HTTP, ${SENDERS} senders`);
  const [first] = subjects;
  subjects.forEach(({ name }, index) => {
    const toFirst = (pick: (one: { seconds: number; cpu: number }) => number) => ({
      to: `the same of ${first!.name}`,
      values: found[index]!.map((one, round) => pick(one) / pick(found[0]![round]!)),
    });
    const rateOf = ({ seconds }: { seconds: number }) => MESSAGES / seconds;
    const cpuOf = ({ cpu }: { cpu: number }) => (cpu / MESSAGES) * 1e6;
    figures.add(`${name}: taken`, '/s', found[index]!.map(rateOf), { ratio: toFirst(rateOf) });
    figures.add(`${name}: CPU time of all servers for a message`, 'µs', found[index]!.map(cpuOf), {
      ratio: toFirst(cpuOf),
    });
  });
}

/** A node of one process that does everything, or of one for each of these sets of roles; where those are that answer. */
async function startFilled(
  stack: AsyncDisposableStack,
  home: string,
  serverUrl: string,
  roles: readonly string[],
) {
  const database = stack.use(await createTestDatabase({ serverUrl, log }));
  const processes = stack.use(new Processes(home, database.url));
  const urls: string[] = [];
  for (const one of roles) urls.push(await processes.start(one));
  const answering = urls.filter((_, at) => /answer/.test(roles[at]!));
  const filled = await postAll(answering, createBodies(FILLED, 'filled'), SENDERS);
  processes.pause();
  return { processes, urls: answering, hashes: filled.hashes };
}

async function benchServing(figures: Figures, directory: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startDurableServer(log));
  const start = (name: string, roles: readonly string[]) =>
    startFilled(stack, join(directory, name), server.url, roles);
  const one = { name: 'one process', ...(await start('one', [ALL])) };
  const two = {
    name: 'two answering processes',
    ...(await start('two', [REST, 'answer', 'answer'])),
  };
  const three = { name: 'three answering processes', ...(await start('three', [ALL, 'answer', 'answer'])) };
  tell('three nodes, of seven processes, serve');
  const bare = stack.use(await startBare(server.url));
  const { hashes } = await postAll([bare.url], createBodies(FILLED, 'filled'), SENDERS);
  await benchReads(figures, [one, two, three, { name: 'a bare server', urls: [bare.url], hashes }]);
  await benchIngest(figures, [
    one,
    { ...two, name: 'one that answers, the other roles apart', urls: two.urls.slice(0, 1) },
    two,
  ]);
}

const PARTS: Readonly<Record<string, (figures: Figures, directory: string) => Promise<void>>> = {
  serving: benchServing,
  commits: (figures, directory) => benchCommits(figures, directory, DURABLE),
};

/** Several processes of one core node on one database, beside one; what a standby costs that commits wait for. `serving` or `commits` for one part. */
export async function benchProcesses(figures: Figures, [wanted]: readonly string[]): Promise<void> {
  const parts = Object.entries(PARTS).filter(([name]) => wanted === undefined || name === wanted);
  if (parts.length === 0)
    throw new Error(`processes has no part "${wanted}": its parts are ${Object.keys(PARTS).join(', ')}`);
  for (const [name, bench] of parts) {
    const directory = await mkdtemp(join(tmpdir(), `skerry-bench-${name}-`));
    try {
      await bench(figures, directory);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }
}
