import { connect } from 'node:net';
import { AppError } from '@skerry/protocol';

const TIMEOUT_MS = 5_000;
const MAX_ANSWER_CHARS = 1024 * 1024;
/** Commands that wait for the ones before them. */
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

/** HAProxy's admin socket. Commands are answered in the order in which they came. */
export class AdminSocket {
  readonly #path: string;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Rejects where HAProxy is not there, or does not answer in time; with OVERLOADED where too many wait. */
  async ask(command: string): Promise<string> {
    if (this.#waiting >= MAX_WAITING) throw new AppError('OVERLOADED', 'too much is asked of HAProxy');
    this.#waiting++;
    const answer = this.#last.then(() => askOnce(this.#path, command));
    this.#last = answer.catch(() => {}).then(() => this.#waiting--);
    return await answer;
  }
}
