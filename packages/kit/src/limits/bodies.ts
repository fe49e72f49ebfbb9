import { AppError } from '@skerry/protocol/forms';
import type { FastifyRequest, onRequestHookHandler, preValidationHookHandler } from 'fastify';
import { type Client, type ClientOptions, createClientOf } from './client.ts';
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

/** A body of a stranger that is counted. */
interface Counted {
  readonly key: string;
  readonly bytes: number;
}

/** Those of the client that has most, the first to come first; none where it has no more than so much. Pure. */
export function listOfMost<B extends Counted>(bodies: Iterable<B>, bytes: number): readonly B[] {
  const byClient = new Map<string, { bytes: number; readonly bodies: B[] }>();
  let most: { bytes: number; readonly bodies: readonly B[] } = { bytes, bodies: [] };
  for (const body of bodies) {
    const own = byClient.get(body.key) ?? { bytes: 0, bodies: [] };
    byClient.set(body.key, own);
    own.bytes += body.bytes;
    own.bodies.push(body);
    if (own.bytes > most.bytes) most = own;
  }
  return most.bodies;
}

/**
 * Bodies have a share per client: one that sends many large ones at once, however slowly, or that has many wait for what is done with
 * them, leaves room for those of others. Where strangers have no room left, a client that has none takes that of bodies on their way, of
 * the client that has most, if that is more than is asked for.
 * @param onLetGo called for each whose room another client takes
 */
export function shareBodies(
  app: Hooked,
  clients: ClientOptions,
  { limits = BODIES, onLetGo }: { readonly limits?: ShareLimits | undefined; readonly onLetGo: () => void },
): void {
  const shares = new Shares(limits);
  const clientOf = createClientOf(clients);
  const held = new WeakMap<FastifyRequest, Held>();
  const counted = new Set<Counted & { readonly request: FastifyRequest }>();
  const makeRoom = (client: Client, bytes: number) => {
    if (!client.isExempt && shares.heldBy(client.key) > 0) return;
    const coming = [...counted].filter(({ request }) => !request.raw.complete);
    for (const { request } of listOfMost(coming, bytes)) {
      if (shares.whyNot(client, bytes) === undefined) return;
      release(request);
      onLetGo();
      request.raw.socket.destroy();
    }
  };
  const take = (request: FastifyRequest, bytes: number) => {
    if (!(bytes >= COUNTED_BYTES)) return;
    const client = clientOf(request);
    if (shares.whyNot(client, bytes) === 'all') makeRoom(client, bytes);
    const taken = shares.take(client, bytes);
    if (typeof taken === 'string') throw refusalOf(taken, limits.perClient);
    const body = { key: client.key, bytes, request };
    if (!client.isExempt) counted.add(body);
    held.set(request, {
      release() {
        counted.delete(body);
        taken.release();
      },
    });
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
