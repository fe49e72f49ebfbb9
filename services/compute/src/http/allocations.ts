import type { CoreClient } from '@skerry/client';
import { answer, type Handlers, type HttpServer, serveAll } from '@skerry/kit';
import { AppError, hexToBytes, normaliseAddress, recoverPersonalSigner, sha256Hex } from '@skerry/protocol';
import { ALLOCATIONS_API } from '@skerry/protocol/api/compute/allocations';
import type { DomainRegistry } from '../domains/registry.ts';
import type { Instances } from '../instances/instances.ts';
import { Replays } from '../owner/replays.ts';
import { absent } from './absent.ts';
import { KeptBodies } from './kept-bodies.ts';

export interface AllocationSources {
  readonly core: Pick<CoreClient, 'getInstance'>;
  readonly instances: Instances;
  readonly nodeId: string;
  readonly domains: DomainRegistry | undefined;
  /** Addresses of schedulers, lower case. */
  readonly signers: readonly string[];
  readonly now: () => number;
}

const WINDOW_SECONDS = 300;
const SCHEME =
  /^[A-Za-z]+-EIP191-V1 (?:sig=(?:0x)?([0-9a-fA-F]{130})), ?payload=(?:0x)?([0-9a-fA-F]{2,4096})$/;
/** The same for people. */
const SCHEME_FORM = '"<NAME>-EIP191-V1 sig=<130 hex digits>, payload=<2 to 4,096 hex digits>"';

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
function readSchedulerSignature(
  authorization: string | undefined,
  request: { readonly method: string; readonly path: string; readonly body: Uint8Array },
  nowMs: number,
): { signer: string; head: string } {
  if (authorization === undefined)
    throw new AppError(
      'SIGNATURE_REQUIRED',
      `allocations must be signed by a scheduler, in the header Authorization: ${SCHEME_FORM}`,
    );
  const refused = (why: string) => new AppError('INVALID_SIGNATURE', why);
  const [, signature, payload] = SCHEME.exec(authorization) ?? [];
  const bytes = payload === undefined ? undefined : hexToBytes(payload);
  if (!signature || !bytes) throw refused(`the Authorization header is not ${SCHEME_FORM}`);
  const text = new TextDecoder().decode(bytes);
  const signer = recoverPersonalSigner(text, signature);
  if (!signer) throw refused('the signature is not one of personal_sign (EIP-191) over the payload');
  const head = parseHead(text);
  const digest = sha256Hex(request.body);
  if (head?.method !== request.method || head.path !== request.path || head.body_sha256 !== digest)
    throw refused('the payload is for a different request: it must name its method, path and body_sha256');
  if (!(typeof head.iat === 'number' && Math.abs(head.iat - nowMs / 1000) <= WINDOW_SECONDS))
    throw refused(`the payload's iat must be within ${WINDOW_SECONDS} s of this node's clock`);
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
  const bodies = new KeptBodies();
  const handlers = allocationHandlers(sources, bodies);
  serveAll(app, ALLOCATIONS_API, handlers, (operation) =>
    operation === ALLOCATIONS_API.setAllocations ? { preParsing: bodies.keep } : {},
  );
}

function allocationHandlers(
  sources: AllocationSources,
  bodies: KeptBodies,
): Handlers<typeof ALLOCATIONS_API> {
  const replays = new Replays({ windowMs: WINDOW_SECONDS * 1000 });
  return {
    async setAllocations({ body, request }) {
      const { method, url, headers } = request;
      const nowMs = sources.now();
      const signed = { method, path: url, body: bodies.of(request) };
      const { signer, head } = readSchedulerSignature(headers.authorization, signed, nowMs);
      if (!sources.signers.includes(signer))
        throw new AppError(
          'NOT_PERMITTED',
          'the signer is not a scheduler of this node (SKERRY_COMPUTE_SCHEDULERS)',
        );
      await replays.note(signer, head, nowMs);
      const result = await takeAll(sources, [...(body.instances ?? []), ...(body.persistent_vms ?? [])]);
      const { successful, failing } = result;
      const status = failing.length === 0 ? 200 : successful.length === 0 ? 503 : 207;
      return answer(status, { success: failing.length === 0, ...result, stopped: [] });
    },
    async updateMachine({ params: { ref } }) {
      const found = sources.instances.find(ref);
      if (!found) throw absent(sources.instances, ref);
      await sources.instances.look(ref, () => sources.core.getInstance(ref));
      const { owner } = found.record.wanted;
      if (owner !== undefined) sources.domains?.wake(owner);
      return { status: 'updated', vm_hash: ref };
    },
    async notifyAllocation({ body }) {
      const { failing, errors } = await takeAll(sources, [body.instance]);
      const success = failing.length === 0;
      return answer(success ? 200 : 503, { success, successful: success, failing, errors });
    },
  };
}

async function takeAll({ core, instances, nodeId }: AllocationSources, ids: readonly string[]) {
  const successful: string[] = [];
  const errors: Record<string, string> = {};
  for (const id of new Set(ids)) {
    try {
      const view = await instances.look(id, () => core.getInstance(id));
      if (view.node_id !== nodeId)
        throw new AppError(
          'NOT_PERMITTED',
          'according to the core node, this instance is on another node or on none',
        );
      if (!instances.find(id))
        throw new AppError('NO_CAPACITY', instances.absenceOf(id)?.message ?? 'it was refused');
      successful.push(id);
    } catch (error) {
      errors[id] = error instanceof AppError ? error.message : 'the node failed';
    }
  }
  return { successful, failing: Object.keys(errors), errors };
}
