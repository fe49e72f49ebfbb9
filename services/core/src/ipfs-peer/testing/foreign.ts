import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';

export interface Ask {
  readonly id: number;
  readonly act: 'dial' | 'put' | 'provide' | 'get';
  readonly text: string;
}

export interface Answer {
  readonly id: number;
  readonly value?: string;
  readonly failure?: string;
}

const SCRIPT = fileURLToPath(new URL('./foreign-peer.ts', import.meta.url));

/** A peer of other people's software, in a process of its own. */
export class ForeignPeer implements AsyncDisposable {
  /** Its multiaddr. */
  readonly address: string;
  readonly #child: ChildProcess;
  #last = 0;

  private constructor(child: ChildProcess, address: string) {
    this.#child = child;
    this.address = address;
  }

  static async start(dhtProtocol: string, listen = '/ip4/127.0.0.1/tcp/0'): Promise<ForeignPeer> {
    const child = fork(SCRIPT, [listen, dhtProtocol], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const { value } = await awaitReady<Answer>(child, 'the foreign peer');
    return new ForeignPeer(child, value!);
  }

  async ask(act: Ask['act'], text: string): Promise<string> {
    const id = ++this.#last;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const hear = (answer: Answer) => {
      if (answer.id !== id) return;
      this.#child.off('message', hear);
      if (answer.failure === undefined) resolve(answer.value!);
      else reject(new Error(answer.failure));
    };
    this.#child.on('message', hear);
    this.#child.send({ id, act, text } satisfies Ask);
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endProcess(this.#child, 'SIGKILL');
  }
}
