import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createSigner, generatePrivateKey } from '@skerry/client';
import type { Goal } from '../measure/figure.ts';
import { type Figures, median } from '../measure/figures.ts';

const SIZES_MIB = [1, 32, 1024];
const ROUNDS = 5;
const SAMPLE_MS = 100;
const MIB = 1024 * 1024;
/** Of what the least can do that a server does, where a goal is more than that. */
const OF_THE_LEAST = 0.9;
const SERVER_CPU = '0';
const CLIENT_CPU = '1';
const BOUNDARY = 'skerry-bench-boundary';
const CORE = '../../services/core/src/testing/process.ts';
const here = (path: string) => resolve(fileURLToPath(new URL('.', import.meta.url)), path);

interface Server {
  readonly url: string;
  readonly child: ChildProcess;
}

interface Transfer {
  readonly mibPerSecond: number;
  /** What the server's process spent, all threads, in milliseconds. */
  readonly cpuMs: number;
  /** Resident memory of the server, in MiB, every SAMPLE_MS. */
  readonly residentMib: readonly number[];
}

function residentMib({ child }: Server): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]) / 1024;
}

/** Processor time of the server's process so far, all threads, in milliseconds (Linux: schedstat, in nanoseconds). */
function cpuMs({ child }: Server): number {
  const tasks = `/proc/${child.pid}/task`;
  return readdirSync(tasks).reduce(
    (sum, task) => sum + Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6,
    0,
  );
}

async function startServer(script: string, args: string[], home: string): Promise<Server> {
  const env = {
    PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
    SKERRY_HOME: home,
    SKERRY_CORE_PORT: '0',
    SKERRY_CORE_HOST: '127.0.0.1',
    SKERRY_LOG_LEVEL: 'error',
  };
  const child = spawn('taskset', ['-c', SERVER_CPU, process.execPath, here(script), ...args], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [message] = (await once(child, 'message')) as [{ urls: string[] }];
  return { url: message.urls[0]!, child };
}

async function stopServer({ child }: Server): Promise<void> {
  const exited = once(child, 'exit');
  if (child.connected) child.disconnect();
  await exited;
}

/** Sends `head`, `sizeMib` times the same piece, and `tail`; or reads an answer to its end where there is no head. */
async function transfer(
  server: Server,
  path: string,
  body?: { head: Buffer; piece: Buffer; sizeMib: number; tail: Buffer; type: string },
  sizeMib = body!.sizeMib,
): Promise<Transfer> {
  const residentMibs: number[] = [residentMib(server)];
  const timer = setInterval(() => residentMibs.push(residentMib(server)), SAMPLE_MS);
  const cpuBeforeMs = cpuMs(server);
  const startMs = performance.now();
  const outgoing = request(`${server.url}${path}`, {
    method: body ? 'POST' : 'GET',
    ...(body && {
      headers: {
        'content-type': body.type,
        'content-length': body.head.length + body.tail.length + body.sizeMib * body.piece.length,
      },
    }),
  });
  const answered = once(outgoing, 'response');
  if (body) {
    outgoing.write(body.head);
    for (let sent = 0; sent < body.sizeMib; sent++) {
      if (!outgoing.write(body.piece)) await once(outgoing, 'drain');
    }
    outgoing.end(body.tail);
  } else outgoing.end();
  const [response] = await answered;
  let received = 0;
  for await (const chunk of response) received += chunk.length;
  const seconds = (performance.now() - startMs) / 1000;
  clearInterval(timer);
  residentMibs.push(residentMib(server));
  if (response.statusCode !== 200 || (!body && received !== sizeMib * MIB))
    throw new Error(`${path}: status ${response.statusCode}, ${received} bytes`);
  return { mibPerSecond: sizeMib / seconds, cpuMs: cpuMs(server) - cpuBeforeMs, residentMib: residentMibs };
}

/** What takes bytes or gives them, and what its rate and processor time should be of the peer's. */
interface Subject {
  readonly name: string;
  readonly goals?: { readonly rate: number; readonly cpu: number } | undefined;
  /** Nobody does less: where the goals are more than nine tenths of what this can do, those are the goals. */
  readonly isLeast?: boolean;
  run(): Promise<Transfer>;
}

const rateOf = (one: Transfer) => one.mibPerSecond;
const cpuOf = (one: Transfer) => one.cpuMs;

/** All subjects in turn, in another order each round, after one of each that is not counted. */
async function measureInTurns(subjects: readonly Subject[]): Promise<Transfer[][]> {
  const rounds: Transfer[][] = [];
  for (const subject of subjects) await subject.run();
  for (let round = 0; round < ROUNDS; round++) {
    const results: Transfer[] = [];
    for (let i = 0; i < subjects.length; i++) {
      const index = (i + round) % subjects.length;
      results[index] = await subjects[index]!.run();
    }
    rounds.push(results);
  }
  return rounds;
}

/** @param peer index of the subject that the others are compared with */
async function measureSubjects(
  figures: Figures,
  title: string,
  subjects: readonly Subject[],
  peer: number,
): Promise<void> {
  const rounds = await measureInTurns(subjects);
  const ratiosOf = (index: number, pick: (one: Transfer) => number) =>
    rounds.map((round) => pick(round[index]!) / pick(round[peer]!));
  const least = subjects.findIndex(({ isLeast }) => isLeast);
  const canBe = (pick: (one: Transfer) => number) => (least < 0 ? undefined : median(ratiosOf(least, pick)));
  const [rate, cpu] = [canBe(rateOf), canBe(cpuOf)];
  figures.group(title);
  subjects.forEach(({ name, goals }, index) => {
    const take = (what: string, unit: string, pick: (one: Transfer) => number, goal?: Goal) => {
      const values = ratiosOf(index, pick);
      const ratio = index === peer ? undefined : { to: subjects[peer]!.name, values };
      figures.add(
        `${name}${what}`,
        unit,
        rounds.map((round) => pick(round[index]!)),
        { ratio, goal },
      );
    };
    take(
      '',
      'MiB/s',
      rateOf,
      goals && { of: 'ratio', least: Math.min(goals.rate, OF_THE_LEAST * (rate ?? Infinity)) },
    );
    take(
      ', CPU time',
      'ms',
      cpuOf,
      goals && { of: 'ratio', most: Math.max(goals.cpu, (cpu ?? 0) / OF_THE_LEAST) },
    );
    figures.add(
      `${name}, resident memory`,
      'MiB',
      rounds.flatMap((round) => round[index]!.residentMib),
    );
  });
}

async function measureSize(figures: Figures, core: Server, bare: Server, sizeMib: number): Promise<void> {
  const piece = randomBytes(MIB);
  const digest = createHash('sha256');
  for (let n = 0; n < sizeMib; n++) digest.update(piece);
  const hash = digest.digest('hex');
  const signer = createSigner(generatePrivateKey());
  const field = (name: string, value: string) =>
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const head = Buffer.from(
    `${field('address', signer.address)}${field('signature', signer.sign(hash))}--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`,
  );
  const none = Buffer.alloc(0);
  const raw = { head: none, piece, sizeMib, tail: none, type: 'application/octet-stream' };
  const form = {
    ...raw,
    head,
    tail: Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
    type: `multipart/form-data; boundary=${BOUNDARY}`,
  };
  const isLarge = sizeMib === SIZES_MIB.at(-1);
  const uploads: Subject[] = [
    { name: 'bare: req.pipe(file), fsync', run: () => transfer(bare, '/', raw) },
    { name: 'bare with SHA-256', run: () => transfer(bare, '/hash', raw) },
    {
      name: 'core node: form, SHA-256, fsync, message',
      goals: isLarge ? { rate: 0.8, cpu: 1.5 } : undefined,
      run: () => transfer(core, '/api/v0/storage/store', form),
    },
  ];
  const downloads: Subject[] = [
    { name: 'bare: createReadStream.pipe(res)', run: () => transfer(bare, '/', undefined, sizeMib) },
    {
      name: 'bare: four buffers of 256 KiB again and again',
      isLeast: true,
      run: () => transfer(bare, '/reusing', undefined, sizeMib),
    },
    {
      name: 'core node',
      goals: isLarge ? { rate: 1.2, cpu: 0.6 } : undefined,
      run: () => transfer(core, `/api/v0/storage/raw/${hash}`, undefined, sizeMib),
    },
  ];
  // An upload is compared with the bare server that hashes, too: no server that knows files by their hash can do without.
  await measureSubjects(figures, `upload of ${sizeMib} MiB, synced to the disk`, uploads, 1);
  await measureSubjects(figures, `download of ${sizeMib} MiB`, downloads, 0);
}

/** Upload and download against the least that a Node server does; the servers on one core, the client on the other. */
export async function benchStorage(figures: Figures, args: readonly string[]): Promise<void> {
  const [size] = args;
  const sizes = size === undefined ? SIZES_MIB : [Number(size)];
  const home = await mkdtemp(join(tmpdir(), 'skerry-bench-'));
  execFileSync('taskset', ['-pc', CLIENT_CPU, String(process.pid)], { stdio: 'ignore' });
  const core = await startServer(CORE, [], home);
  const bare = await startServer('./bare.ts', [join(home, 'bare')], home);
  try {
    for (const sizeMib of sizes) await measureSize(figures, core, bare, sizeMib);
  } finally {
    await stopServer(bare);
    await stopServer(core);
    await rm(home, { recursive: true, force: true });
  }
}
