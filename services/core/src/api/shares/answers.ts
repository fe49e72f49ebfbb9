import type { Writable } from 'node:stream';
import {
  type Client,
  type createClientOf,
  type Held,
  type HttpServer,
  type NoShare,
  Shares,
} from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ANSWER_BYTES_MAX, type Hold, LIGHT_BYTES } from '../../state/lists/weight.ts';

const MIB = 1024 * 1024;

/** Text of heavy answers that are read and put together, a matter of seconds: some five times as much of the heap. */
const MAKING = { total: 2 * ANSWER_BYTES_MAX, reserve: ANSWER_BYTES_MAX, perClient: ANSWER_BYTES_MAX };
/** Who was refused the making of one asks again by then; whoever had one meanwhile lets others go first. */
const TURN_MS = 5_000;
/** Text of answers until they are sent, which takes as long as their readers like. */
const OPEN = { total: 256 * MIB, reserve: 64 * MIB, perClient: ANSWER_BYTES_MAX };
/** Smaller answers wait in the kernel, and are not counted. */
const COUNTED_BYTES = 64 * 1024;
/** An answer that somebody has had for so long ends where there is no room for others. */
const HAD_MS = 10_000;
/** Seconds. */
const RETRY_AFTER = 2;

type ClientOf = ReturnType<typeof createClientOf>;

/** What an answer is written to: a response, or the connection of a WebSocket. */
type Outlet = Pick<Writable, 'destroyed' | 'destroy' | 'once'>;

interface Open {
  readonly outlet: Outlet;
  readonly isExempt: boolean;
  /** When it was begun, or began to be sent. */
  sinceMs: number;
  readonly sending: Held;
  making?: Held | undefined;
}

interface SocketAnswer {
  readonly hold: Hold;
  /** It is put together, and begins to be sent. */
  send(): void;
  sent(): void;
}

function refusalOf(reason: NoShare): AppError {
  const details = { retry_after: RETRY_AFTER };
  return reason === 'share'
    ? new AppError(
        'RATE_LIMITED',
        `a client may have ${ANSWER_BYTES_MAX / MIB} MiB of answers at once; read those that you have asked for first`,
        { details },
      )
    : new AppError('OVERLOADED', 'too many large answers are being read', { details });
}

/** Whose turn it is, as long as anybody remembers: a client that had its turn waits for those who were refused since. */
class Turns {
  /** When clients had theirs, and when others were refused, by client; the oldest first. */
  readonly #had = new Map<string, number>();
  readonly #refused = new Map<string, number>();

  isOthers(key: string, nowMs: number): boolean {
    for (const times of [this.#had, this.#refused])
      for (const [other, atMs] of times) {
        if (nowMs - atMs < TURN_MS) break;
        times.delete(other);
      }
    return this.#had.has(key) && this.#refused.size > (this.#refused.has(key) ? 1 : 0);
  }

  noteTaken(key: string, nowMs: number): void {
    this.#refused.delete(key);
    this.#had.delete(key);
    this.#had.set(key, nowMs);
  }

  noteRefused(key: string, nowMs: number): void {
    this.#refused.delete(key);
    this.#refused.set(key, nowMs);
  }
}

/**
 * What all answers together may hold, each client its share of it: each answer has its bound, and a node would end of many. What is
 * known before it is read is taken before, and the rest when it is sent; it is given back when the answer is sent, or its reader gone.
 */
export class Answers {
  readonly #clientOf: ClientOf;
  readonly #now: () => number;
  readonly #making = new Shares(MAKING);
  readonly #turns = new Turns();
  readonly #sending = new Shares(OPEN);
  /** The oldest first. */
  readonly #open = new Map<Outlet, Open>();

  /** @param now milliseconds of a clock that never goes back */
  constructor(clientOf: ClientOf, now: () => number = () => performance.now()) {
    this.#clientOf = clientOf;
    this.#now = now;
  }

  /** Text of all answers that are counted. */
  get held(): number {
    return this.#sending.held;
  }

  /** For what is read to answer a request: takes it from its client's share. */
  of(reply: FastifyReply): Hold {
    return (bytes) => this.#hold(reply.raw, reply.request, bytes, bytes > LIGHT_BYTES);
  }

  /** For what a WebSocket begins with: it counts until it is told that all went out, or until the connection ends. */
  ofSocket(reply: FastifyReply, socket: Outlet): SocketAnswer {
    return {
      hold: (bytes) => this.#hold(socket, reply.request, bytes, bytes > LIGHT_BYTES),
      send: () => this.#send(socket),
      sent: () => {
        const open = this.#open.get(socket);
        if (open) this.#release(open);
      },
    };
  }

  /** Counts what is sent and was not counted before. */
  watch(app: HttpServer): void {
    app.addHook('onSend', (_request, reply, payload, done) => {
      if (!this.#send(reply.raw) && (typeof payload === 'string' || Buffer.isBuffer(payload)))
        this.#hold(reply.raw, reply.request, payload.length, false);
      done();
    });
  }

  #hold(outlet: Outlet, request: FastifyRequest, bytes: number, isHeavy: boolean): void {
    if (bytes < COUNTED_BYTES || this.#open.has(outlet)) return;
    const client = this.#clientOf(request);
    const making = isHeavy ? this.#takeMaking(client, bytes) : undefined;
    if (typeof making === 'string') throw refusalOf(making);
    const sending = this.#takeOpen(client, bytes);
    if (typeof sending === 'string') {
      making?.release();
      throw refusalOf(sending);
    }
    const { isExempt } = client;
    const open: Open = { outlet, isExempt, sinceMs: this.#now(), sending, making };
    this.#open.set(outlet, open);
    if (outlet.destroyed) this.#release(open);
    else outlet.once('close', () => this.#release(open));
  }

  /** @returns whether it was held already */
  #send(outlet: Outlet): boolean {
    const open = this.#open.get(outlet);
    if (!open) return false;
    open.making?.release();
    open.making = undefined;
    open.sinceMs = this.#now();
    this.#open.delete(outlet);
    this.#open.set(outlet, open);
    return true;
  }

  /** All that strangers have room for is one client's share: then they take turns. */
  #takeMaking(client: Pick<Client, 'key' | 'isExempt'>, bytes: number): Held | NoShare {
    if (client.isExempt) return this.#making.take(client, bytes);
    const nowMs = this.#now();
    if (this.#turns.isOthers(client.key, nowMs))
      throw new AppError('RATE_LIMITED', 'others wait to have an answer as large as this one', {
        details: { retry_after: RETRY_AFTER },
      });
    const making = this.#making.take(client, bytes);
    if (making === 'all') this.#turns.noteRefused(client.key, nowMs);
    else if (making !== 'share') this.#turns.noteTaken(client.key, nowMs);
    return making;
  }

  #takeOpen(client: Pick<Client, 'key' | 'isExempt'>, bytes: number): Held | NoShare {
    let taken = this.#sending.take(client, bytes);
    for (const open of this.#open.values()) {
      if (taken !== 'all' || this.#now() - open.sinceMs < HAD_MS) break;
      if (open.isExempt || open.making) continue;
      this.#release(open);
      open.outlet.destroy();
      taken = this.#sending.take(client, bytes);
    }
    return taken;
  }

  #release(open: Open): void {
    open.making?.release();
    open.sending.release();
    this.#open.delete(open.outlet);
  }
}
