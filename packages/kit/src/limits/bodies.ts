import { AppError } from '@skerry/protocol/forms';
import type { FastifyRequest, onRequestHookHandler, preValidationHookHandler } from 'fastify';
import { type ClientOptions, createClientOf } from './client.ts';
import { type Held, type NoShare, type ShareLimits, Shares } from './shares.ts';

const MIB = 1024 * 1024;

/** Bytes of bodies that are read whole: from before they come until they are answered. */
const BODIES: ShareLimits = { total: 64 * MIB, reserve: 16 * MIB, perClient: 8 * MIB };
/** Smaller ones are not counted: how many of them a client has is bounded by its connections and its rate. */
const COUNTED_BYTES = 16 * 1024;
/** Seconds. */
const RETRY_AFTER = 1;

function refusalOf(reason: NoShare, perClient: number): AppError {
  const details = { retry_after: RETRY_AFTER };
  return reason === 'share'
    ? new AppError(
        'RATE_LIMITED',
        `a client may have ${perClient} bytes of bodies on their way at once; send one after another`,
        { details },
      )
    : new AppError('OVERLOADED', 'too many large bodies are on their way', { details });
}

/** As much of a server as it needs. */
interface Hooked {
  addHook(name: 'onRequest', hook: onRequestHookHandler): unknown;
  addHook(name: 'preValidation', hook: preValidationHookHandler): unknown;
}

/** What a body may come to; nothing where it is not read whole. */
function bytesOf({ headers, routeOptions: { bodyLimit = 0, config } }: FastifyRequest): number {
  if (config?.watchesItsBody) return 0;
  const isUnsaid = headers['transfer-encoding'] !== undefined;
  return Math.min(isUnsaid ? bodyLimit : Number(headers['content-length'] ?? 0), bodyLimit);
}

/**
 * Bodies have a share per client: one that sends many large ones at once, however slowly, or that has many wait for what is done with
 * them, leaves room for those of others.
 */
export function shareBodies(app: Hooked, clients: ClientOptions, limits: ShareLimits = BODIES): void {
  const shares = new Shares(limits);
  const clientOf = createClientOf(clients);
  const held = new WeakMap<FastifyRequest, Held>();
  const take = (request: FastifyRequest, bytes: number) => {
    if (!(bytes >= COUNTED_BYTES)) return;
    const taken = shares.take(clientOf(request), bytes);
    if (typeof taken === 'string') throw refusalOf(taken, limits.perClient);
    held.set(request, taken);
  };
  const release = (request: FastifyRequest) => held.get(request)?.release();
  app.addHook('onRequest', (request, reply, done) => {
    take(request, bytesOf(request));
    if (held.has(request)) reply.raw.once('close', () => release(request));
    done();
  });
  // Of one that did not say how long it would be it is known now.
  app.addHook('preValidation', (request, _reply, done) => {
    if (held.has(request) && Buffer.isBuffer(request.body)) {
      release(request);
      take(request, request.body.length);
    }
    done();
  });
}
