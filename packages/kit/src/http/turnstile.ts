import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '@skerry/protocol/forms';
import { type ClientOptions, createExemption } from '../limits/client.ts';
import { type Held, Shares } from '../limits/shares.ts';
import { clientKeyOf } from '../net/client-address.ts';

/** Requests that begin in one turn of the event loop: some ten milliseconds of work. */
const PER_TURN = 64;
/** Requests that may wait for their turn. */
const WAITING_MAX = 20_000;
/** Of them, those of one client: a connection may bring thousands at once. */
const WAITING_OF_ONE = 2_000;

/** Where nobody has a share. */
const UNCOUNTED: Held = { release: () => {} };

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

  /**
   * Calls `begin` now or in a later turn.
   * @param takePlace asked where it has to wait, for as long as it does; nothing: it may not
   * @returns false: too many wait, and it is never called
   */
  pass(begin: () => void, takePlace: () => Held | undefined = () => UNCOUNTED): boolean {
    if (this.waiting >= this.#waitingMax) return false;
    this.#schedule();
    if (this.#begun < this.#perTurn && this.waiting === 0) {
      this.#begun++;
      begin();
      return true;
    }
    const place = takePlace();
    if (!place) return false;
    this.#waiting.push(() => {
      place.release();
      begin();
    });
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

/** Places of those that wait, of which each client has a share; behind a trusted proxy there are many clients. */
function sharePlaces(clients: ClientOptions | undefined): (socket: Socket) => Held | undefined {
  if (!clients) return () => UNCOUNTED;
  const isOurs = createExemption(clients, clients.trustedProxies);
  const shares = new Shares({ total: WAITING_MAX, reserve: 0, perClient: WAITING_OF_ONE });
  const known = new WeakMap<Socket, { readonly key: string; readonly isExempt: boolean }>();
  return (socket) => {
    let client = known.get(socket);
    if (!client) {
      const address = socket.remoteAddress ?? '';
      client = { key: clientKeyOf(address), isExempt: isOurs(address) };
      known.set(socket, client);
    }
    if (client.isExempt) return UNCOUNTED;
    const place = shares.take(client);
    return typeof place === 'string' ? undefined : place;
  };
}

/** Made once: who is refused costs next to nothing. */
const OF_ONE = new AppError(
  'RATE_LIMITED',
  `${WAITING_OF_ONE} requests of this client are waiting; try again shortly`,
);
const OF_ALL = new AppError('OVERLOADED', 'too many requests are waiting; try again shortly');

export interface TurnOptions {
  readonly urgentPaths: ReadonlySet<string>;
  readonly clients?: ClientOptions | undefined;
  /** Answers what may not wait. */
  readonly refuse: (refusal: AppError, request: IncomingMessage, response: ServerResponse) => void;
}

/** Has the requests of a server wait for their turns, before anything is done for them. */
export function takeTurns(server: Server, { urgentPaths, clients, refuse }: TurnOptions): void {
  const handlers = server.listeners('request') as ((
    request: IncomingMessage,
    response: ServerResponse,
  ) => void)[];
  server.removeAllListeners('request');
  const turnstile = new Turnstile();
  const placeFor = sharePlaces(clients);
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const begin = () => {
      // Who hung up meanwhile waits for no answer.
      if (!response.destroyed) for (const handle of handlers) handle.call(server, request, response);
    };
    if (urgentPaths.has(request.url ?? '')) {
      begin();
      return;
    }
    let isOfOne = false;
    const takePlace = () => {
      const place = placeFor(request.socket);
      isOfOne = place === undefined;
      return place;
    };
    if (turnstile.pass(begin, takePlace)) return;
    refuse(isOfOne ? OF_ONE : OF_ALL, request, response);
  });
}
