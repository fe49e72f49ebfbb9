import { backoffMs } from '@skerry/kit';
import { fieldsOf } from '@skerry/protocol';
import { PROGRAM_LIMITS } from '../limits.ts';

/** A message that a program is to be called with. */
export interface Waiting {
  readonly program: string;
  readonly message: string;
  /** How often the program failed at it. */
  readonly failures: number;
  /** Not before, milliseconds of this process: a clock that is set holds up no message. */
  readonly dueAtMs: number;
  /** How often in a row the program could not be called with it; of this process, too. */
  readonly delays: number;
}

/** What has to survive a restart, and when what waits is due, which is not kept. */
export interface QueueState {
  /** The last event that was looked at; null where nothing was followed yet. */
  readonly cursor: string | null;
  readonly waiting: readonly Waiting[];
}

function parseWaiting(value: unknown): Waiting {
  const { program, message, failures } = fieldsOf(value);
  const isRight = typeof program === 'string' && typeof message === 'string' && typeof failures === 'number';
  if (!isRight) throw new Error('something in it is no message for a program');
  return { program, message, failures, dueAtMs: 0, delays: 0 };
}

/** What an earlier process wrote. Throws where it is not that. */
export function parseQueueState(value: unknown): QueueState {
  const { cursor, waiting } = fieldsOf(value);
  if (!(cursor === null || typeof cursor === 'string') || !Array.isArray(waiting))
    throw new Error('it is no queue of messages');
  return { cursor, waiting: waiting.map(parseWaiting) };
}

/** For a later process. An earlier release does not read it without `dueAtMs`, and goes by that. Pure. */
export const renderQueueState = ({ cursor, waiting }: QueueState): string => {
  const kept = waiting.map(({ program, message, failures }) => ({ program, message, failures, dueAtMs: 0 }));
  return `${JSON.stringify({ cursor, waiting: kept })}\n`;
};

export const EMPTY: QueueState = { cursor: null, waiting: [] };

/** Where all have no room: the newest message of the program that has most, if that is more than this one will have. */
function findGreedy(waiting: readonly Waiting[], own: number): Waiting | undefined {
  const counts = new Map<string, number>();
  for (const { program } of waiting) counts.set(program, (counts.get(program) ?? 0) + 1);
  const [greedy, most] = [...counts].reduce((one, other) => (other[1] > one[1] ? other : one));
  return most > own + 1 ? waiting.findLast(({ program }) => program === greedy) : undefined;
}

/**
 * With one more message, each once for a program; undefined where too many wait. Of all that wait, none of a program with few
 * is left out for one with many. Pure.
 */
export function add(
  { cursor, waiting }: QueueState,
  program: string,
  message: string,
): QueueState | undefined {
  if (waiting.some((one) => one.program === program && one.message === message)) return { cursor, waiting };
  const own = waiting.filter((one) => one.program === program).length;
  if (own >= PROGRAM_LIMITS.messagesPerProgram) return undefined;
  const added = { program, message, failures: 0, dueAtMs: 0, delays: 0 };
  if (waiting.length < PROGRAM_LIMITS.messages) return { cursor, waiting: [...waiting, added] };
  const greedy = findGreedy(waiting, own);
  return greedy && { cursor, waiting: [...waiting.filter((one) => one !== greedy), added] };
}

const isOther = (done: Waiting) => (one: Waiting) =>
  one.program !== done.program || one.message !== done.message;

/** Without one that is done. Pure. */
export const remove = ({ cursor, waiting }: QueueState, done: Waiting): QueueState => ({
  cursor,
  waiting: waiting.filter(isOther(done)),
});

const change = (state: QueueState, changed: Waiting): QueueState => ({
  ...state,
  waiting: state.waiting.map((one) => (isOther(changed)(one) ? one : changed)),
});

/** After a failure that does not pass by itself: later again, or not any more. Pure. */
export function postpone(state: QueueState, failed: Waiting, nowMs: number): QueueState {
  const failures = failed.failures + 1;
  if (failures >= PROGRAM_LIMITS.messageTries) return remove(state, failed);
  const dueAtMs = nowMs + PROGRAM_LIMITS.messageRetryMs * 2 ** (failures - 1);
  return change(state, { ...failed, failures, dueAtMs, delays: 0 });
}

/** Where the program was not called, for what passes: later again, after longer and longer rests. Pure. */
export function putOff(state: QueueState, one: Waiting, nowMs: number): QueueState {
  const delays = one.delays + 1;
  const restMs = backoffMs(delays, PROGRAM_LIMITS.messageAwayMs, PROGRAM_LIMITS.messageAwayMaxMs, 0);
  return change(state, { ...one, delays, dueAtMs: nowMs + restMs });
}

/** Only of programs that still ask. Pure. */
export const keepOnly = ({ cursor, waiting }: QueueState, programs: ReadonlySet<string>): QueueState => ({
  cursor,
  waiting: waiting.filter(({ program }) => programs.has(program)),
});

const MINUTE_MS = 60_000;

/** Programs whose last call is remembered; beyond it the one that was called longest ago is forgotten. */
const CALLED_MAX = 10_000;

/** Counts calls of the last minute, and knows who was called last. */
export class CallRate {
  readonly #calls = new Map<string, number[]>();
  /** In the order of their last calls. */
  readonly #last = new Map<string, number>();

  mayCall(program: string, nowMs: number): boolean {
    const recent = (this.#calls.get(program) ?? []).filter((atMs) => atMs > nowMs - MINUTE_MS);
    if (recent.length === 0) this.#calls.delete(program);
    else this.#calls.set(program, recent);
    return recent.length < PROGRAM_LIMITS.messageCallsPerMinute;
  }

  note(program: string, nowMs: number): void {
    this.#calls.set(program, [...(this.#calls.get(program) ?? []), nowMs]);
    this.#last.delete(program);
    this.#last.set(program, nowMs);
    if (this.#last.size > CALLED_MAX) this.#last.delete(this.#last.keys().next().value!);
  }

  /** When it was called last; 0 where it was not. */
  lastOf(program: string): number {
    return this.#last.get(program) ?? 0;
  }
}

/**
 * What can be called now: of each program its oldest message, one at a time; those programs first that were not called longest.
 * Pure but for the rate.
 */
export function listDue(
  { waiting }: QueueState,
  busy: ReadonlySet<string>,
  rate: CallRate,
  nowMs: number,
): Waiting[] {
  const seen = new Set(busy);
  const due = waiting.filter((one) => {
    if (seen.has(one.program)) return false;
    seen.add(one.program);
    return one.dueAtMs <= nowMs && rate.mayCall(one.program, nowMs);
  });
  return due.sort((one, other) => rate.lastOf(one.program) - rate.lastOf(other.program));
}
