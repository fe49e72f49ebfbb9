import { join } from 'node:path';
import type { CoreClient } from '@skerry/client';
import { Failures, type Logger, makeDirectory, pause, readTextIfAny, writeFileAtomically } from '@skerry/kit';
import { AppError, type MessageEventData, NETWORK_POST } from '@skerry/protocol';
import type { NetworkMessageView } from '@skerry/protocol/api/core/messages';
import { AWAY } from '../../files/away.ts';
import { findMessage } from '../../files/message.ts';
import { isDiskFull } from '../../host/disk-full.ts';
import { PROGRAM_LIMITS } from '../limits.ts';
import type { Programs } from '../programs.ts';
import type { SandboxCall } from '../sandbox/sandbox.ts';
import { fits, type MessageFilter, mayFit } from './filters.ts';
import {
  add,
  CallRate,
  EMPTY,
  keepOnly,
  listDue,
  parseQueueState,
  postpone,
  putOff,
  type QueueState,
  remove,
  renderQueueState,
  type Waiting,
} from './queue.ts';

/** By which sandboxes are shared out: messages together are one caller. */
const CALLER = 'messages';
const STATE_FILE = 'messages-to-programs.json';
const LOOK_MS = 500;
const RETRY_BASE_MS = 500;
const RETRY_MAX_MS = 30_000;
/** A program that will not be there again. */
const GONE = ['PROGRAM_NOT_FOUND', 'MESSAGE_FORGOTTEN', 'PROGRAM_UNSUPPORTED'];
/** The core node failed before it said what a message is: that is nothing of the program's. */
class NotReached extends Error {
  constructor(cause: AppError) {
    super('the core node does not say what the message is', { cause });
  }
}

/** Whether what kept a program from being called may be gone later. All else may be of the program's own making, and last. */
function passes(error: unknown): boolean {
  if (!(error instanceof AppError) || isDiskFull(error)) return true;
  return AWAY.has(error.code) || (error.cause !== undefined && isDiskFull(error.cause));
}

export interface TriggersOptions {
  readonly core: Pick<CoreClient, 'events'> & Parameters<typeof findMessage>[0];
  readonly programs: Pick<Programs, 'run' | 'isKept'>;
  /** Where what waits survives a restart. */
  readonly directory: string;
  /** How long a call may go on while other programs wait; as PROGRAM_LIMITS has it by default. */
  readonly contendedMs?: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** A call that is under way. */
interface Running {
  readonly sinceMs: number;
  readonly ending: AbortController;
  /** It takes no place from other programs. */
  isKept: boolean;
}

/** A message as a program is called with it, in the form that deployed nodes show. */
function callOf(message: NetworkMessageView): SandboxCall {
  const body = Buffer.from(JSON.stringify(message));
  return {
    trigger: 'message',
    ...{ method: 'POST', path: '/', query: '', variables: message, isRun: false, body },
    headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
  };
}

/** Reports of runs are about what was called: a program that asked for all messages would call itself by them for ever. */
const isReport = ({ content_type }: MessageEventData) => content_type === NETWORK_POST.programRuns;

/**
 * Calls programs with the messages that they ask for: follows the event log from a cursor, and keeps what is to be done in a
 * file. Each message is handed over once; where the process is killed in between, a second time.
 */
export class Triggers {
  readonly #options: TriggersOptions;
  readonly #path: string;
  readonly #rate = new CallRate();
  /** By program, in the order in which they began. */
  readonly #running = new Map<string, Running>();
  #filters: ReadonlyMap<string, readonly MessageFilter[]> = new Map();
  #state: QueueState;
  #saved: QueueState;
  /** What is in the file. */
  #savedText: string;
  #saving: Promise<void> = Promise.resolve();
  /** It is tried at each look, however long the disk is full. */
  readonly #unsaved: Failures;
  #round = new AbortController();
  #changed = Promise.withResolvers<void>();
  #left = 0;

  private constructor(options: TriggersOptions, state: QueueState, text: string) {
    this.#options = options;
    this.#path = join(options.directory, STATE_FILE);
    this.#state = state;
    this.#saved = state;
    this.#savedText = text;
    const what = 'what programs are to be called with cannot be stored';
    this.#unsaved = new Failures({ log: options.log, what });
  }

  static async open(options: TriggersOptions): Promise<Triggers> {
    await makeDirectory(options.directory, 0o700);
    const text = (await readTextIfAny(join(options.directory, STATE_FILE))) ?? '';
    try {
      return new Triggers(options, text === '' ? EMPTY : parseQueueState(JSON.parse(text)), text);
    } catch (error) {
      options.log.error(
        { err: error },
        'what programs were to be called with cannot be read; going on from now',
      );
      return new Triggers(options, EMPTY, text);
    }
  }

  /** Messages that wait for their programs. */
  get waiting(): number {
    return this.#state.waiting.length;
  }

  /** @param cursor where to begin, where nothing was followed before */
  set(filters: ReadonlyMap<string, readonly MessageFilter[]>, cursor: string): void {
    this.#filters = filters;
    const { waiting } = keepOnly(this.#state, new Set(filters.keys()));
    this.#state = { waiting, cursor: filters.size === 0 ? null : (this.#state.cursor ?? cursor) };
    if (filters.size === 0) this.#round.abort();
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Until the signal ends. */
  async work(): Promise<void> {
    await Promise.all([this.#follow(), this.#serve()]);
    await this.#save();
  }

  async #follow(): Promise<void> {
    const { core, log, signal } = this.#options;
    const what = 'messages for programs cannot be followed; retrying';
    const failures = new Failures({ log, what, baseMs: RETRY_BASE_MS, maxMs: RETRY_MAX_MS });
    const ended = new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => resolve(), { once: true }),
    );
    while (!signal.aborted) {
      const { cursor } = this.#state;
      // Nothing is passed over before it is known who asks for it.
      if (cursor === null || this.#filters.size === 0) {
        await Promise.race([this.#changed.promise, ended]);
        continue;
      }
      this.#round = new AbortController();
      const round = AbortSignal.any([signal, this.#round.signal]);
      try {
        for await (const event of core.events({ cursor, signal: round })) {
          if (event.kind === 'message' && !isReport(event.data)) await this.#look(event.data);
          if (this.#state.cursor !== null) this.#state = { ...this.#state, cursor: event.cursor };
          failures.clear();
        }
      } catch (error) {
        if (round.aborted) continue;
        // Another core node, or one that lost its memory: the next answer says where its log is.
        if (error instanceof AppError && error.code === 'INVALID_CURSOR')
          this.#state = { ...this.#state, cursor: null };
        if (!(await pause(failures.note(error), signal))) return;
      }
    }
  }

  async #look(event: MessageEventData): Promise<void> {
    const asking = [...this.#filters].filter(([, filters]) => mayFit(event, filters));
    if (asking.length === 0) return;
    const answer = await findMessage(this.#options.core, event.item_hash);
    if (!answer?.message || answer.status !== 'processed') return;
    for (const [program, filters] of asking)
      if (fits(answer.message, filters)) this.#add(program, event.item_hash);
  }

  #add(program: string, message: string): void {
    const { waiting } = this.#state;
    const state = add(this.#state, program, message);
    if (state) this.#state = state;
    // It waited before, or there was room for it.
    if (state && (state.waiting === waiting || state.waiting.length > waiting.length)) return;
    if (++this.#left === 1 || this.#left % PROGRAM_LIMITS.messages === 0)
      this.#options.log.warn(
        { program, left: this.#left },
        'too many messages wait for programs; some of the newer ones are left out',
      );
  }

  async #serve(): Promise<void> {
    const { signal } = this.#options;
    while (await pause(LOOK_MS, signal)) {
      const due = listDue(this.#state, new Set(this.#running.keys()), this.#rate, performance.now());
      const taken = [...this.#running.values()].filter(({ isKept }) => !isKept).length;
      const free = PROGRAM_LIMITS.messageCalls - taken;
      for (const one of due.slice(0, Math.max(0, free))) void this.#call(one);
      if (due.length > free) this.#endLongest();
      await this.#save();
    }
  }

  /** Others wait for their turn. */
  #endLongest(): void {
    const { contendedMs = PROGRAM_LIMITS.contendedMs } = this.#options;
    const [longest] = [...this.#running.values()].filter(({ isKept }) => !isKept);
    if (!longest || performance.now() - longest.sinceMs < contendedMs) return;
    const why = `other programs are waiting: a call by a message is limited to ${contendedMs / 1000} s`;
    longest.ending.abort(new AppError('PROGRAM_TIMED_OUT', why));
  }

  async #call(one: Waiting): Promise<void> {
    const { programs, signal } = this.#options;
    const running: Running = { sinceMs: performance.now(), ending: new AbortController(), isKept: false };
    this.#running.set(one.program, running);
    this.#rate.note(one.program, performance.now());
    try {
      running.isKept = programs.isKept(one.program);
      const isDone = await this.#hand(one, running.ending.signal);
      this.#state = isDone ? remove(this.#state, one) : postpone(this.#state, one, performance.now());
    } catch (error) {
      // The end of the node ends calls, too: the next process makes them again.
      if (!signal.aborted) this.#state = this.#afterError(one, error);
    } finally {
      await this.#save();
      this.#running.delete(one.program);
    }
  }

  #afterError(one: Waiting, error: unknown): QueueState {
    const code = error instanceof AppError ? error.code : '';
    if (GONE.includes(code)) return remove(this.#state, one);
    const { program, message } = one;
    // Its owner sees the outcome of each run; a stranger's program writes no lines of the node's log.
    this.#options.log.debug({ err: error, program, message }, 'a program could not be called with a message');
    const next = passes(error) ? putOff : postpone;
    return next(this.#state, one, performance.now());
  }

  /** Whether nothing is left to be done. */
  async #hand({ program, message: hash }: Waiting, ending: AbortSignal): Promise<boolean> {
    const answer = await findMessage(this.#options.core, hash).catch((error: unknown) => {
      throw error instanceof AppError && error.kind === 'internal' ? new NotReached(error) : error;
    });
    if (!answer?.message || answer.status !== 'processed') return true;
    const { result } = await this.#options.programs.run(program, callOf(answer.message), CALLER, ending);
    return result.kind === 'answer' && result.status < 500;
  }

  /** One after the other; what does not change is not written. */
  #save(): Promise<void> {
    this.#saving = this.#saving.then(async () => {
      const state = this.#state;
      if (state === this.#saved) return;
      try {
        const text = renderQueueState(state);
        if (text !== this.#savedText) await writeFileAtomically(this.#path, text, 0o600);
        this.#saved = state;
        this.#savedText = text;
        this.#unsaved.clear();
      } catch (error) {
        this.#unsaved.note(error);
      }
    });
    return this.#saving;
  }
}
