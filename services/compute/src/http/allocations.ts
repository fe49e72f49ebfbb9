import type { CoreClient } from '@skerry/client';
import type { HttpServer } from '@skerry/kit';
import { AppError, hexToBytes, normaliseAddress, recoverPersonalSigner, sha256Hex } from '@skerry/protocol';
import Type, { type Static } from 'typebox';
import type { Keeper } from '../instances/keeper.ts';
import { Replays } from '../owner/replays.ts';
import { KeptBodies } from './kept-bodies.ts';

export interface AllocationSources {
  readonly core: Pick<CoreClient, 'getInstance'>;
  readonly keeper: Keeper;
  readonly nodeId: string;
  /** Addresses of schedulers, lower case. */
  readonly signers: readonly string[];
  readonly now: () => number;
}

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Hashes = Type.Optional(Type.Union([Type.Array(Hash, { maxItems: 4_096 }), Type.Null()]));
const Allocations = Type.Object({
  persistent_vms: Hashes,
  instances: Hashes,
  on_demand_vms: Type.Optional(Type.Unknown()),
  jobs: Type.Optional(Type.Unknown()),
});
const Notify = Type.Object({ instance: Hash });
const WINDOW_SECONDS = 300;
const SCHEME =
  /^[A-Za-z]+-EIP191-V1 (?:sig=(?:0x)?([0-9a-fA-F]{130})), ?payload=(?:0x)?([0-9a-fA-F]{2,4096})$/;

interface SignedHead {
  readonly method?: unknown;
  readonly path?: unknown;
  readonly body_sha256?: unknown;
  readonly iat?: unknown;
}

/**
 * The address that signed a request's head in the form of deployed schedulers, and the digest of what was signed. Throws
 * SIGNATURE_REQUIRED, INVALID_SIGNATURE.
 * @param body the exact bytes
 */
export function readSchedulerSignature(
  authorization: string | undefined,
  request: { readonly method: string; readonly path: string; readonly body: Uint8Array },
  nowMs: number,
): { signer: string; head: string } {
  if (authorization === undefined)
    throw new AppError('SIGNATURE_REQUIRED', 'allocations are signed by a scheduler (Authorization)');
  const refused = (why: string) => new AppError('INVALID_SIGNATURE', why);
  const [, signature, payload] = SCHEME.exec(authorization) ?? [];
  const bytes = payload === undefined ? undefined : hexToBytes(payload);
  if (!signature || !bytes) throw refused('the Authorization header has another form');
  const text = new TextDecoder().decode(bytes);
  const signer = recoverPersonalSigner(text, signature);
  if (!signer) throw refused('the signature is malformed');
  const head = parseHead(text);
  const digest = sha256Hex(request.body);
  if (head?.method !== request.method || head.path !== request.path || head.body_sha256 !== digest)
    throw refused('the signature is of another request');
  if (!(typeof head.iat === 'number' && Math.abs(head.iat - nowMs / 1000) <= WINDOW_SECONDS))
    throw refused('the signature was made at another time');
  return { signer: normaliseAddress(signer), head: sha256Hex(text) };
}

function parseHead(text: string): SignedHead | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as SignedHead) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * How schedulers and owners point a node to its instances. What counts is what the core node says: the node looks there at
 * once, and an instance that is not allocated to it there is refused with that reason.
 */
export function addAllocationRoutes(app: HttpServer, sources: AllocationSources): void {
  const replays = new Replays({ windowMs: WINDOW_SECONDS * 1000 });
  const bodies = new KeptBodies();
  const signed = {
    schema: { body: Allocations },
    preParsing: bodies.keep,
  };
  app.post('/control/allocations', signed, async (request, reply) => {
    const { authorization } = request.headers;
    const nowMs = sources.now();
    const { method, url } = request;
    const body = request.body as Static<typeof Allocations>;
    const bytes = bodies.of(request);
    const { signer, head } = readSchedulerSignature(authorization, { method, path: url, body: bytes }, nowMs);
    if (!sources.signers.includes(signer))
      throw new AppError(
        'NOT_PERMITTED',
        'the signer is no scheduler of this node (SKERRY_COMPUTE_SCHEDULERS)',
      );
    await replays.note(signer, head, nowMs);
    const result = await takeAll(sources, [...(body.instances ?? []), ...(body.persistent_vms ?? [])]);
    const { successful, failing } = result;
    const status = failing.length === 0 ? 200 : successful.length === 0 ? 503 : 207;
    return reply.status(status).send({ success: failing.length === 0, ...result, stopped: [] });
  });
  app.post('/control/allocation/notify', { schema: { body: Notify } }, async (request, reply) => {
    const { failing, errors } = await takeAll(sources, [request.body.instance]);
    const success = failing.length === 0;
    return reply.status(success ? 200 : 503).send({ success, successful: success, failing, errors });
  });
}

async function takeAll({ core, keeper, nodeId }: AllocationSources, ids: readonly string[]) {
  const successful: string[] = [];
  const errors: Record<string, string> = {};
  for (const id of new Set(ids)) {
    try {
      const view = await core.getInstance(id);
      if (view.node_id !== nodeId)
        throw new AppError(
          'NOT_PERMITTED',
          'the core node says that another node, or none, has this instance',
        );
      await keeper.see(view);
      if (!keeper.find(id)) throw new AppError('NO_CAPACITY', keeper.refusalOf(id) ?? 'it was refused');
      successful.push(id);
    } catch (error) {
      errors[id] = error instanceof AppError ? error.message : 'the node failed';
    }
  }
  return { successful, failing: Object.keys(errors), errors };
}
