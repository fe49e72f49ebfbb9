import { AskError, type Asker, type AskFailure, pause } from '@skerry/kit';
import { AppError, fieldsOf, isErrorCode, LIMITS, type Runner, sha256Hex } from '@skerry/protocol';
import type { RunnableProgram, StoredProgram } from '../../state/programs/programs.ts';

/** What a program answered, for the caller. */
export interface ProgramOutput {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
  /** How its sandbox came about, by the node's word; undefined where it does not say. */
  readonly start: string | undefined;
}

/** Nodes tried for one call, and what a call may take beside its program's own time: loading code, waiting for a sandbox. */
const TRIES_MAX = 3;
const OVERHEAD_MS = 60_000;
/** A node that takes no call for so long hangs, or has too much to do: its program does not run there, and is not sent to it. */
const TAKE_MS = 10_000;
const OUTPUT_BYTES_MAX = 8 * 1024 * 1024;

/** By these a node says that it did not run the program, and another one may. */
const ELSEWHERE = ['NO_RUNNER', 'OVERLOADED', 'SHUTTING_DOWN', 'PROGRAM_NOT_FOUND'];
/** A compute node that follows another core node hears of a program a moment later than this one. */
const UNHEARD = 'PROGRAM_NOT_FOUND';
const UNHEARD_PAUSES_MS = [200, 400, 800, 1_600, 3_200];
/** A node that does not know this one as a service of its network counts all its callers as one. */
const LIMITED = 'RATE_LIMITED';
/** Nothing of the call was sent, so nothing was run. */
const NOTHING_SENT: readonly AskFailure[] = ['refused', 'unconnected', 'untaken'];

const runs = (runner: Runner, { runtime }: RunnableProgram['program']) =>
  runner.runtimes.includes(runtime.kind === 'named' ? runtime.runtime : 'python3');

/**
 * The nodes that can run a program, the one that should first: the same one for the same program as long as it is there,
 * since the program is warm there (rendezvous hashing). Pure.
 */
export function orderRunners(
  runners: readonly Runner[],
  { programHash, program }: RunnableProgram,
): Runner[] {
  const rank = (runner: Runner) => sha256Hex(`${programHash}\n${runner.node_id}`);
  return runners
    .filter((runner) => runs(runner, program))
    .map((runner) => ({ runner, rank: rank(runner) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ runner }) => runner);
}

/** Of a traceback that a node tells, so much is passed on. */
const TRACEBACK_CHARS_MAX = 64 * 1024;

/** The only detail of a run that callers are told of. */
function detailsOf(details: unknown): { traceback: string } | undefined {
  const { traceback } = fieldsOf(details);
  return typeof traceback === 'string' ? { traceback: traceback.slice(0, TRACEBACK_CHARS_MAX) } : undefined;
}

/** `warm`, `spare` or `cold` (docs/programs.md): a node's other words are not passed on. */
const STARTS = ['warm', 'spare', 'cold'];

/** What a node answered where the program did not. It is a stranger: only words that we know are passed on. */
function refusalOf(body: Buffer, status: number): AppError {
  try {
    const { error, code, details } = fieldsOf(JSON.parse(body.toString('utf8')));
    if (code === LIMITED)
      return new AppError('OVERLOADED', 'the compute node takes no more runs of this node now');
    if (isErrorCode(code))
      return new AppError(code, String(error).slice(0, LIMITS.reasonChars), {
        details: detailsOf(details),
      });
  } catch {
    // Not a node of this network, or a proxy before one.
  }
  return new AppError('NO_RUNNER', `the compute node answered ${status} without a reason`);
}

async function callRunner(
  runner: Runner,
  stored: StoredProgram,
  body: string,
  { asker, caller, signal, takeMs = TAKE_MS }: ForwardOptions,
): Promise<ProgramOutput> {
  const answer = await asker.ask(`${runner.url.replace(/\/+$/, '')}/run/${stored.programHash}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'net-program-caller': caller },
    body,
    takeMs,
    timeoutMs: stored.program.timeoutSeconds * 1000 + OVERHEAD_MS,
    bodyBytesMax: OUTPUT_BYTES_MAX,
    signal,
  });
  if (answer.headers['net-program-outcome'] !== 'answered') throw refusalOf(answer.body, answer.status);
  const contentType = answer.headers['content-type'] ?? 'application/octet-stream';
  const start = STARTS.find((one) => one === answer.headers['net-program-start']);
  return { status: answer.status, contentType, body: answer.body, start };
}

const FAILURES: Readonly<Record<AskFailure, (message: string) => AppError>> = {
  // The same words for everything that is not asked: a stranger's URL is not to look around in our network.
  refused: () =>
    new AppError(
      'NO_RUNNER',
      'the compute node is not at an address that this core node may ask; with SKERRY_CORE_ALLOW_PRIVATE=yes it asks private addresses, too',
    ),
  unconnected: (message) => new AppError('NO_RUNNER', `the compute node ${message}`),
  broken: (message) => new AppError('NO_RUNNER', `the compute node ${message}`),
  untaken: (message) =>
    new AppError(
      'NO_RUNNER',
      `the compute node does not take the call, so the program did not run (${message})`,
    ),
  // Of a program that takes too long the node itself says so, and by then long has.
  timeout: (message) =>
    new AppError(
      'NO_RUNNER',
      `the compute node took the call and does not answer; whether the program ran is not known (${message})`,
    ),
  too_large: () =>
    new AppError('PROGRAM_OUTPUT_TOO_LARGE', `the program answered more than ${OUTPUT_BYTES_MAX} bytes`),
};

/** A failure in our words, and whether another node may be asked. */
function readFailure(error: unknown): { failure: AppError; isElsewhere: boolean } {
  if (error instanceof AppError) return { failure: error, isElsewhere: ELSEWHERE.includes(error.code) };
  if (!(error instanceof AskError)) throw error;
  return {
    failure: FAILURES[error.failure](error.message),
    isElsewhere: NOTHING_SENT.includes(error.failure),
  };
}

export interface ForwardOptions {
  /** Whom the run is counted for, as the node may know it. */
  readonly caller: string;
  /** Asks the nodes, at addresses that the operator lets be asked. */
  readonly asker: Asker;
  readonly signal: AbortSignal;
  /** How long a node may take to say that it takes a call, milliseconds; ten seconds where left out. */
  readonly takeMs?: number;
}

/**
 * Runs a program on one of the compute nodes that can. Never twice: another node is asked only where the one before did not run it.
 *
 * @param caller which of this node's callers it is for: nodes that believe it share themselves out among callers
 * @throws AppError NO_RUNNER, OVERLOADED, PROGRAM_FAILED, PROGRAM_CRASHED, PROGRAM_TIMED_OUT, PROGRAM_OUTPUT_TOO_LARGE,
 *   PROGRAM_UNSUPPORTED
 */
export async function forwardRun(
  runners: readonly Runner[],
  stored: StoredProgram,
  variables: unknown,
  options: ForwardOptions,
): Promise<ProgramOutput> {
  const body = JSON.stringify({ variables });
  for (const pauseMs of [...UNHEARD_PAUSES_MS, 0]) {
    const tried = await tryRunners(runners, stored, body, options);
    if (!(tried instanceof AppError)) return tried;
    if (tried.code !== UNHEARD) throw tried;
    if (pauseMs > 0 && !(await pause(pauseMs, options.signal))) break;
  }
  throw new AppError('NO_RUNNER', 'no compute node has heard of the program yet; try again in a moment');
}

/** One node after another, until one ran it. @returns why none did */
async function tryRunners(
  runners: readonly Runner[],
  stored: StoredProgram,
  body: string,
  options: ForwardOptions,
): Promise<ProgramOutput | AppError> {
  let last = new AppError('NO_RUNNER', 'no compute node of this network runs programs of this kind now');
  for (const runner of orderRunners(runners, stored).slice(0, TRIES_MAX)) {
    try {
      return await callRunner(runner, stored, body, options);
    } catch (error) {
      const { failure, isElsewhere } = readFailure(error);
      if (!isElsewhere) throw failure;
      last = failure;
    }
  }
  return last;
}
