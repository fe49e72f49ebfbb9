import type { LiveState, LiveWish } from '../workers/live.ts';
import type { Asked, TaskName, Tasks, Told } from '../workers/tasks.ts';
import { AskFailure } from './failure.ts';

/** The bundler puts the names of the files here. */
declare const VERIFIER_URL: string;
declare const LIVE_URL: string;

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
}

class Verifier {
  readonly #worker = startWorker(VERIFIER_URL);
  readonly #ready = Promise.withResolvers<void>();
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;

  constructor() {
    this.#worker.onmessage = ({ data }: MessageEvent<Told>) => this.#hear(data);
    this.#worker.onerror = ({ message }) =>
      this.#fail(new AskFailure('INTERNAL', `the verifier failed: ${message || 'it could not be loaded'}`));
  }

  #fail(error: AskFailure): void {
    this.#ready.reject(error);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  #hear(told: Told): void {
    if (told.kind === 'ready') {
      this.#ready.resolve();
      return;
    }
    const waiting = this.#waiting.get(told.id);
    if (told.kind === 'progress') {
      waiting?.onProgress?.(told.done);
      return;
    }
    this.#waiting.delete(told.id);
    if (told.kind === 'answer') waiting?.resolve(told.answer as never);
    else waiting?.reject(new AskFailure(told.code, told.message));
  }

  async ask<N extends TaskName>(
    name: N,
    asked: Tasks[N]['asked'],
    onProgress?: (done: number) => void,
  ): Promise<Tasks[N]['answer']> {
    await this.#ready.promise;
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onProgress });
      this.#worker.postMessage({ id, name, asked } satisfies Asked<N>);
    });
  }
}

let verifier: Verifier | undefined;

/** Asks the verifier, which is loaded first where it was not yet. Throws AskFailure. */
export function verify<N extends TaskName>(
  name: N,
  asked: Tasks[N]['asked'],
  onProgress?: (done: number) => void,
): Promise<Tasks[N]['answer']> {
  verifier ??= new Verifier();
  return verifier.ask(name, asked, onProgress);
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
