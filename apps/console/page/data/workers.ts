import { type Signal, signal } from '@preact/signals';
import type { LiveState, LiveWish } from '../workers/live.ts';
import type { SigningName, SigningTasks } from '../workers/signing.ts';
import type { TaskName, Tasks, Told } from '../workers/tasks.ts';
import { AskFailure, failureOf } from './failure.ts';
import { askOwner, type Identity } from './identity.ts';
import { whileHere } from './place.ts';

/** The bundler puts the names of the files here. */
declare const VERIFIER_URL: string;
declare const LIVE_URL: string;
declare const SIGNING_URL: string;

interface Policy {
  createScriptURL(url: string): string;
}
interface TrustedTypes {
  createPolicy(name: string, rules: Policy): Policy;
}

/** Scripts come from this page's own folder alone. Browsers without trusted types go without. */
const rules: Policy = { createScriptURL: (url) => url };
const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
const policy = trustedTypes?.createPolicy('skerry', rules) ?? rules;

const startWorker = (path: string) =>
  new Worker(policy.createScriptURL(new URL(path, document.baseURI).href), { type: 'module' });

interface Waiting {
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  readonly onProgress?: ((done: number) => void) | undefined;
  /** Who signs what the task wants signed. */
  readonly by?: Identity | undefined;
  /** Ends with the page that it was wanted on. */
  readonly here: AbortSignal;
}

/** A worker that has not said by then that it can be asked will not: it neither loads nor fails. */
const START_MAX_MS = 60_000;

/** A worker that is asked for tasks by name. */
class TaskWorker {
  readonly #worker: Worker;
  readonly #ready = Promise.withResolvers<void>();
  readonly #waiting = new Map<number, Waiting>();
  /** Of each question, by its turn: where advice goes that comes while it is open. */
  readonly #lacks = new Map<number, Signal<string | null>>();
  #next = 0;
  #state: 'starting' | 'ready' | 'lost' = 'starting';
  readonly #starting: ReturnType<typeof setTimeout>;

  constructor(path: string, what: string) {
    this.#worker = startWorker(path);
    this.#worker.onmessage = ({ data }: MessageEvent<Told>) => this.#hear(data);
    this.#worker.onerror = ({ message }) =>
      this.#fail(new AskFailure('INTERNAL', `${what} failed: ${message || 'it could not be loaded'}`));
    this.#starting = setTimeout(() => {
      this.stop();
      this.#fail(new AskFailure('TIMED_OUT', `${what} did not start`));
    }, START_MAX_MS);
    // Whoever asks meets it.
    this.#ready.promise.catch(() => {});
  }

  /** It could not be loaded: another one may, once the node answers again. */
  get isLost(): boolean {
    return this.#state === 'lost';
  }

  #fail(error: AskFailure): void {
    clearTimeout(this.#starting);
    if (this.#state === 'starting') this.#state = 'lost';
    this.#ready.reject(error);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  #hear(told: Told): void {
    if (told.kind === 'ready') {
      clearTimeout(this.#starting);
      this.#state = 'ready';
      this.#ready.resolve();
      return;
    }
    if (told.kind === 'advice') {
      const lack = this.#lacks.get(told.advice.turn);
      if (lack) lack.value = told.advice.lack;
      return;
    }
    const waiting = this.#waiting.get(told.id);
    if (told.kind === 'progress') {
      waiting?.onProgress?.(told.done);
      return;
    }
    if (told.kind === 'sign') {
      void this.#sign(told, waiting);
      return;
    }
    this.#waiting.delete(told.id);
    if (told.kind === 'answer') waiting?.resolve(told.answer as never);
    else waiting?.reject(new AskFailure(told.code, told.message));
  }

  async #sign({ toSign }: Extract<Told, { kind: 'sign' }>, waiting: Waiting | undefined): Promise<void> {
    const { turn, text, about } = toSign;
    const lack = signal<string | null>(null);
    this.#lacks.set(turn, lack);
    try {
      if (!waiting?.by) throw new AskFailure('SIGNATURE_REQUIRED', 'nobody was asked to sign');
      const { by, here } = waiting;
      this.#worker.postMessage({
        kind: 'signed',
        turn,
        signature: await askOwner({ by, text, about, lack, here }),
      });
    } catch (error) {
      this.#worker.postMessage({ kind: 'refused', turn, message: failureOf(error).message });
    } finally {
      this.#lacks.delete(turn);
    }
  }

  async ask(
    name: string,
    asked: unknown,
    { by, coreUrl, onProgress }: Asking & { readonly coreUrl?: string } = {},
  ): Promise<never> {
    const here = whileHere();
    await this.#ready.promise;
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onProgress, by, here });
      const owner = by && { coreUrl, chain: by.chain, address: by.address };
      this.#worker.postMessage({ id, name, asked, by: owner });
    });
  }

  stop(): void {
    clearTimeout(this.#starting);
    this.#worker.terminate();
  }
}

interface Asking {
  readonly onProgress?: ((done: number) => void) | undefined;
  readonly by?: Identity | undefined;
}

const usable = (worker: TaskWorker | undefined) => (worker?.isLost ? undefined : worker);

let verifier: TaskWorker | undefined;

/** Asks the verifier, which is loaded first where it was not yet. Throws AskFailure. */
export function verify<N extends TaskName>(
  name: N,
  asked: Tasks[N]['asked'],
  { by, onProgress }: Asking = {},
): Promise<Tasks[N]['answer']> {
  verifier = usable(verifier) ?? new TaskWorker(VERIFIER_URL, 'the verifier');
  return verifier.ask(name, asked, {
    by,
    onProgress,
    ...('coreUrl' in asked ? { coreUrl: asked.coreUrl } : {}),
  });
}

let signing: TaskWorker | undefined;

/** Asks the worker that holds the private key. Throws AskFailure. */
export function askSigning<N extends SigningName>(
  name: N,
  asked: SigningTasks[N]['asked'],
): Promise<SigningTasks[N]['answer']> {
  signing = usable(signing) ?? new TaskWorker(SIGNING_URL, 'the signing worker');
  return signing.ask(name, asked);
}

/** The private key is gone with the worker. */
export function stopSigning(): void {
  signing?.stop();
  signing = undefined;
}

export interface Live {
  wish(wish: LiveWish): void;
  stop(): void;
}

export function startLive(onState: (state: LiveState) => void): Live {
  const worker = startWorker(LIVE_URL);
  worker.onmessage = ({ data }: MessageEvent<LiveState>) => onState(data);
  return { wish: (wish) => worker.postMessage(wish), stop: () => worker.terminate() };
}
