import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Requests that begin in one turn of the event loop: some ten milliseconds of work. */
const PER_TURN = 64;
/** Requests that may wait for their turn. */
const WAITING_MAX = 20_000;

/**
 * Lets so many requests begin in each turn of the event loop, in the order in which they came. In between the loop
 * looks at its sockets: what does not have to wait, such as a question for the node's health, is answered although
 * thousands of others arrived before it.
 */
export class Turnstile {
  readonly #perTurn: number;
  readonly #waitingMax: number;
  #waiting: (() => void)[] = [];
  /** The first of those that wait. */
  #next = 0;
  #begun = 0;
  #isScheduled = false;

  constructor(perTurn = PER_TURN, waitingMax = WAITING_MAX) {
    this.#perTurn = perTurn;
    this.#waitingMax = waitingMax;
  }

  get waiting(): number {
    return this.#waiting.length - this.#next;
  }

  /** Calls `begin` now or in a later turn. @returns false: too many wait, and it is never called */
  pass(begin: () => void): boolean {
    if (this.waiting >= this.#waitingMax) return false;
    this.#schedule();
    if (this.#begun < this.#perTurn && this.waiting === 0) {
      this.#begun++;
      begin();
    } else this.#waiting.push(begin);
    return true;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    this.#begun = 0;
    while (this.#begun < this.#perTurn && this.waiting > 0) {
      const begin = this.#waiting[this.#next++]!;
      this.#begun++;
      begin();
    }
    if (this.waiting > 0) {
      this.#schedule();
      // What has begun is let go of now and then, not each time.
      if (this.#next < this.#waiting.length / 2) return;
    }
    this.#waiting = this.#waiting.slice(this.#next);
    this.#next = 0;
  }
}

const REFUSAL = JSON.stringify({
  error: 'too many requests are waiting; try again shortly',
  status: 'error',
  code: 'OVERLOADED',
});

/** Has the requests of a server wait for their turns, before anything is done for them. */
export function takeTurns(server: Server, urgentPaths: ReadonlySet<string>): void {
  const handlers = server.listeners('request') as ((
    request: IncomingMessage,
    response: ServerResponse,
  ) => void)[];
  server.removeAllListeners('request');
  const turnstile = new Turnstile();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const begin = () => {
      // Who hung up meanwhile waits for no answer.
      if (!response.destroyed) for (const handle of handlers) handle.call(server, request, response);
    };
    if (urgentPaths.has(request.url ?? '')) begin();
    else if (!turnstile.pass(begin)) {
      response.writeHead(503, { 'content-type': 'application/json; charset=utf-8', 'retry-after': '1' });
      response.end(REFUSAL);
    }
  });
}
