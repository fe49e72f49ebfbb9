import { connect } from 'node:net';
import { AppError } from '@skerry/protocol';

const TIMEOUT_MS = 5_000;
const MAX_ANSWER_CHARS = 1024 * 1024;
/** Commands of one kind that wait for the ones before them. */
const MAX_WAITING = 1_000;

/** One command line at HAProxy's admin socket, and all that it answers. */
function askOnce(path: string, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ path }, () => socket.write(`${command}\n`));
    const fail = (why: string) => socket.destroy(new AppError('INTERNAL', `HAProxy's admin socket ${why}`));
    const timer = setTimeout(() => fail(`did not answer within ${TIMEOUT_MS} ms`), TIMEOUT_MS);
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
      if (answer.length > MAX_ANSWER_CHARS) fail('said too much');
    });
    socket.once('end', () => resolve(answer));
    socket.once('error', reject);
    socket.once('close', () => {
      clearTimeout(timer);
      reject(new AppError('INTERNAL', "HAProxy's admin socket closed without an answer"));
    });
  });
}

/** A command that waits. */
interface Asked extends PromiseWithResolvers<string> {
  readonly command: string;
}

/**
 * HAProxy's admin socket, one command after another. What the gateway itself needs goes first: however much strangers ask about
 * names, routes change.
 */
export class AdminSocket {
  readonly #path: string;
  readonly #first: Asked[] = [];
  /** By command: who asks the same before it was sent shares the answer. */
  readonly #questions = new Map<string, Asked>();
  #isAsking = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Rejects where HAProxy is not there, or does not answer in time; with OVERLOADED where too many wait. */
  async ask(command: string): Promise<string> {
    const same = this.#questions.get(command);
    if (same) return await same.promise;
    const asked = this.#enter(command, this.#questions.size);
    this.#questions.set(command, asked);
    return await this.#answer(asked);
  }

  /** The same before everything that `ask` was given, in order: for orders, and what the gateway asks for itself. */
  async askFirst(command: string): Promise<string> {
    const asked = this.#enter(command, this.#first.length);
    this.#first.push(asked);
    return await this.#answer(asked);
  }

  #enter(command: string, waiting: number): Asked {
    if (waiting >= MAX_WAITING) throw new AppError('OVERLOADED', 'too much is asked of HAProxy');
    return { command, ...Promise.withResolvers<string>() };
  }

  #answer({ promise }: Asked): Promise<string> {
    if (!this.#isAsking) void this.#askAll();
    return promise;
  }

  #next(): Asked | undefined {
    const order = this.#first.shift();
    if (order) return order;
    for (const question of this.#questions.values()) {
      this.#questions.delete(question.command);
      return question;
    }
    return undefined;
  }

  async #askAll(): Promise<void> {
    this.#isAsking = true;
    for (let asked = this.#next(); asked; asked = this.#next())
      await askOnce(this.#path, asked.command).then(asked.resolve, asked.reject);
    this.#isAsking = false;
  }
}
