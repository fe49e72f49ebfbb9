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

const SIZES_MIB = [1, 32, 1024];
const ROUNDS = 5;
const SAMPLE_MS = 100;
const MIB = 1024 * 1024;
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

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

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

function report(title: string, names: readonly string[], rounds: readonly (readonly Transfer[])[]): void {
  console.log(`\n${title}; median of ${rounds.length} rounds, ratio to "${names[0]}" within a round`);
  names.forEach((name, index) => {
    const rates = rounds.map((round) => round[index]!.mibPerSecond);
    const ratios = rounds.map((round) => round[index]!.mibPerSecond / round[0]!.mibPerSecond);
    const cpu = rounds.map((round) => round[index]!.cpuMs);
    const cpuRatios = rounds.map((round) => round[index]!.cpuMs / round[0]!.cpuMs);
    const memory = rounds.flatMap((round) => round[index]!.residentMib);
    const last = rounds.at(-1)![index]!.residentMib;
    console.log(
      `${name.padEnd(44)} ${median(rates).toFixed(0).padStart(5)} MiB/s  ${median(ratios).toFixed(2)}x [${Math.min(...ratios).toFixed(2)}..${Math.max(...ratios).toFixed(2)}]` +
        `  CPU ${median(cpu).toFixed(0)} ms ${median(cpuRatios).toFixed(2)}x` +
        `  resident ${Math.min(...memory).toFixed(0)}..${Math.max(...memory).toFixed(0)} MiB, last round ${[0, 0.25, 0.5, 0.75, 1].map((at) => last[Math.round(at * (last.length - 1))]!.toFixed(0)).join(' ')}`,
    );
  });
}

/** @param other a core node of another checkout */
async function measureSize(core: Server, bare: Server, sizeMib: number, other?: Server): Promise<void> {
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
  const uploads = [
    () => transfer(bare, '/', raw),
    () => transfer(bare, '/hash', raw),
    () => transfer(core, '/api/v0/storage/store', form),
  ];
  if (other) uploads.push(() => transfer(other, '/api/v0/storage/store', form));
  const downloads = [
    () => transfer(bare, '/', undefined, sizeMib),
    () => transfer(core, `/api/v0/storage/raw/${hash}`, undefined, sizeMib),
  ];
  if (other) downloads.push(() => transfer(other, `/api/v0/storage/raw/${hash}`, undefined, sizeMib));
  const others = other ? ['core node of the other checkout'] : [];
  for (const run of [...uploads, ...downloads]) await run();
  const rounds: { up: Transfer[]; down: Transfer[] }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const inTurn = async (subjects: readonly (() => Promise<Transfer>)[]) => {
      const results: Transfer[] = [];
      for (let i = 0; i < subjects.length; i++) {
        const index = (i + round) % subjects.length;
        results[index] = await subjects[index]!();
      }
      return results;
    };
    rounds.push({ up: await inTurn(uploads), down: await inTurn(downloads) });
  }
  report(
    `upload of ${sizeMib} MiB, synced to the disk`,
    [
      'bare: req.pipe(file), fsync',
      'bare with SHA-256',
      'core node: form, SHA-256, fsync, message',
      ...others,
    ],
    rounds.map((round) => round.up),
  );
  report(
    `download of ${sizeMib} MiB`,
    ['bare: createReadStream.pipe(res)', 'core node', ...others],
    rounds.map((round) => round.down),
  );
}

/**
 * Upload and download against the least that a Node server does; the servers on one core, the client on the other. With
 * another checkout as argument, its core node, too, in turns; then a size in MiB.
 */
export async function benchStorage(): Promise<void> {
  const [checkout, size] = process.argv.slice(3);
  const sizes = size === undefined ? SIZES_MIB : [Number(size)];
  const home = await mkdtemp(join(tmpdir(), 'skerry-bench-'));
  execFileSync('taskset', ['-pc', CLIENT_CPU, String(process.pid)], { stdio: 'ignore' });
  const core = await startServer(CORE, [], home);
  const other =
    checkout === undefined
      ? undefined
      : await startServer(join(resolve(checkout), 'bench/storage', CORE), [], join(home, 'other'));
  const bare = await startServer('./bare.ts', [join(home, 'bare')], home);
  try {
    for (const sizeMib of sizes) await measureSize(core, bare, sizeMib, other);
  } finally {
    await stopServer(bare);
    await stopServer(core);
    if (other) await stopServer(other);
    await rm(home, { recursive: true, force: true });
  }
}
