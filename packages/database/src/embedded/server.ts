import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import pg from 'pg';
import { type Binaries, SERVER_HINT } from './binaries.ts';
import { commandOf, type Identity } from './identity.ts';
import { parseServerLine } from './output.ts';
import { type Owner, runProgram, spawnProgram } from './program.ts';
import { argumentsOf, type ServerSettings } from './settings.ts';

/** Recovery after a crash replays at most max_wal_size or so of log before the server answers. */
const READY_TIMEOUT_MS = 120_000;
const READY_PROBE_INTERVAL_MS = 10;
const PROBE_TIMEOUT_MS = 5_000;

/** A fast shutdown writes everything that is dirty to disk; an immediate one leaves it to recovery. */
const STOP_FAST_TIMEOUT_MS = 30_000;
const STOP_IMMEDIATE_TIMEOUT_MS = 5_000;

/** A system call and the start of a program; a start waits for it no longer. */
const BATCH_TIMEOUT_MS = 5_000;

const LAST_LINES_MAX = 5;

/** How to reach a server, in the words of the pg client. */
export interface Connection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

export interface ServerPlan {
  readonly binaries: Binaries;
  readonly identity: Identity;
  readonly cluster: string;
  readonly settings: ServerSettings;
  /** For the readiness probe: a database that is always there. */
  readonly connection: Connection;
  readonly lockFd: number;
  readonly log: Logger;
}

/** One run of the server, from start to exit. */
export interface Server {
  readonly pid: number;
  /** Settles, with a sentence about why, when the process has ended. Never rejects. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

/** Starts the server and waits until it answers. Throws DATABASE_UNAVAILABLE, and leaves no process, if it does not. */
export async function startServer(plan: ServerPlan, signal?: AbortSignal): Promise<Server> {
  const argv = [plan.binaries.postgres, '-D', plan.cluster, ...argumentsOf(plan.settings)];
  const { libraryPath } = plan.binaries;
  const command = commandOf(plan.identity, 'INT', argv);
  const child = spawnProgram(command, { libraryPath, lockFd: plan.lockFd });
  const ended = watch(child, plan.log);
  const server: Server = { pid: child.pid ?? 0, ended, stop: () => stop(child, ended) };
  try {
    await Promise.all([waitUntilReady(plan, ended, signal), scheduleAsBatch(child, command.owner, plan.log)]);
  } catch (error) {
    await server.stop();
    throw error;
  }
  release(child);
  return server;
}

/**
 * Each statement wakes a process of the server, which took the processor at once from the thread that had sent it, and all who wait for
 * that one waited for the statement of somebody else. As a batch job (sched(7)) it takes the other processor, or waits for its turn.
 * What the server starts from then on inherits it, each connection's process with that. Where the machine refuses, they are scheduled as everything is.
 * @param owner who runs the server, and may do this: a container's root has no say over what others run (CAP_SYS_NICE)
 */
async function scheduleAsBatch({ pid }: ChildProcess, owner: Owner | undefined, log: Logger): Promise<void> {
  if (pid === undefined) return;
  const args = ['-b', '-p', '0', String(pid)];
  const { code, output } = await runProgram(
    { program: 'chrt', args, owner },
    { timeoutMs: BATCH_TIMEOUT_MS },
  );
  if (code !== 0) log.debug({ postgres: pid, output }, 'the database is not scheduled as a batch job');
}

async function waitUntilReady(plan: ServerPlan, ended: Promise<string>, signal?: AbortSignal): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  let failure: string | undefined;
  const watching = ended.then((reason) => {
    failure = `The embedded database ended while it started: ${reason}. ${SERVER_HINT}`;
  });
  while (!(await isAnswering(plan.connection))) {
    signal?.throwIfAborted();
    if (performance.now() > deadline)
      failure ??= `The embedded database did not answer within ${READY_TIMEOUT_MS} ms.`;
    if (failure !== undefined) throw new AppError('DATABASE_UNAVAILABLE', failure);
    await Promise.race([delay(READY_PROBE_INTERVAL_MS), watching]);
  }
}

async function isAnswering(connection: Connection): Promise<boolean> {
  const client = new pg.Client({ ...connection, ssl: false, connectionTimeoutMillis: PROBE_TIMEOUT_MS });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Passes the server's output on to the log and keeps its last lines for the reason of its end. */
function watch(child: ChildProcess, log: Logger): Promise<string> {
  const ended = Promise.withResolvers<string>();
  const lastLines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (line) => {
      const { level, message } = parseServerLine(line);
      log[level]({ postgres: child.pid }, message);
      lastLines.push(message);
      if (lastLines.length > LAST_LINES_MAX) lastLines.shift();
    });
  }
  child.once('error', (error) => ended.resolve(error.message));
  // Not 'close': processes of the server may live on for a moment and keep the pipe open.
  child.once('exit', (code, signal) => {
    const how = signal === null ? `exit code ${code}` : `killed by ${signal}`;
    ended.resolve([how, ...lastLines].join('; '));
  });
  return ended.promise;
}

async function stop(child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.ref();
  const steps = [
    ['SIGINT', STOP_FAST_TIMEOUT_MS],
    ['SIGQUIT', STOP_IMMEDIATE_TIMEOUT_MS],
  ] as const;
  for (const [signal, timeoutMs] of steps) {
    child.kill(signal);
    const timer = AbortSignal.timeout(timeoutMs);
    const timeout = Promise.withResolvers<undefined>();
    timer.addEventListener('abort', () => timeout.resolve(undefined));
    if ((await Promise.race([ended, timeout.promise])) !== undefined) return;
  }
  child.kill('SIGKILL');
  await ended;
}

/** A running server is no reason for our process to go on. */
function release(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdout, child.stderr]) (stream as unknown as { unref(): void } | null)?.unref();
}
