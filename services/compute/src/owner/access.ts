import { readAggregate } from '@skerry/client';
import { Slots } from '@skerry/kit';
import {
  AppError,
  AUTHORIZATIONS,
  fieldsOf,
  isAuthorized,
  LIMITS,
  normaliseAddress,
  OWNER_HEADERS,
  type OwnerOperation,
  parseAuthorizations,
  SECURITY_KEY,
  sha256Hex,
  verifyOwnerPass,
} from '@skerry/protocol';
import type { Replays } from './replays.ts';

export interface AccessOptions {
  readonly coreUrl: string;
  /** This node's names in what owners sign. */
  readonly domain: () => string;
  readonly nodeId: string;
  readonly replays: Replays;
  readonly now: () => number;
}

/** Owners whose delegates are looked up at a time. */
const READINGS_MAX = 4;
/** What one message can say of them. */
const AUTHORIZATIONS_BYTES_MAX = LIMITS.contentFileBytes;

/** What of a request says who asks, and for what. */
export interface SignedRequest {
  readonly publicKey: unknown;
  readonly operation: unknown;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: string;
  readonly hasBody: boolean;
  /** The body; undefined where it comes later, and whoever receives it compares its digest. */
  readonly body: Uint8Array | undefined;
  /** What query and body say may be left unsigned. */
  readonly isLoose?: boolean;
  /** An operation that counts once although it only reads: its answer goes on after the words were checked. */
  readonly isStream?: boolean;
}

/** What owners operate: what it is called, and the type of its messages, which delegates need. */
export const OPERATED = {
  instance: { name: 'instance', type: 'INSTANCE' },
  program: { name: 'program', type: 'PROGRAM' },
} as const;
type Operated = (typeof OPERATED)[keyof typeof OPERATED];

/** What an operation is judged as: it has the chain that owners are verified on, and no channel, so that an entry that is of some permits none. */
const OPERATING = { chain: 'ETH', channel: null, contentType: null, aggregateKey: null } as const;

/** Whether an owner's `authorizations`, as anybody may have written them, let an address operate what the owner's messages of a type ask for. Pure. */
export const mayOperate = (authorizations: unknown, sender: string, type: Operated['type']): boolean =>
  isAuthorized(parseAuthorizations(authorizations), { ...OPERATING, sender, type });

/** The parts of an HTTP request that owners sign. @param body undefined where it comes later */
export function signedRequestOf(
  request: {
    readonly headers: Readonly<Record<string, unknown>>;
    readonly method: string;
    readonly url: string;
  },
  body: Uint8Array | undefined,
): SignedRequest {
  const { headers, method, url } = request;
  const mark = url.indexOf('?');
  return {
    publicKey: headers[OWNER_HEADERS.publicKey],
    operation: headers[OWNER_HEADERS.operation],
    method,
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? '' : url.slice(mark + 1),
    hasBody: body === undefined || body.length > 0,
    body,
  };
}

/** Throws INVALID_SIGNATURE where a body is not the one that was signed. */
export function checkBody({ bodySha256 }: OwnerOperation, digest: string): void {
  if (bodySha256 !== undefined && bodySha256 !== digest)
    throw new AppError('INVALID_SIGNATURE', 'the operation was signed for a different body');
}

/** Decides whether somebody may operate an instance or a program: its owner, or whom the owner's aggregate `security` names. */
export class OwnerAccess {
  readonly #options: AccessOptions;
  readonly #readings = new Slots(READINGS_MAX);

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Who signed. Throws what verifyOwnerPass does, and INVALID_SIGNATURE for another body. Nothing is noted. */
  async identify(request: SignedRequest): Promise<OwnerOperation> {
    const { domain, nodeId, now } = this.#options;
    const { publicKey, operation, body, ...asked } = request;
    const expected = { ...asked, domain: domain(), node: nodeId, nowMs: now() };
    const signed = await verifyOwnerPass({ publicKey, operation }, expected);
    if (body) checkBody(signed, sha256Hex(body));
    return signed;
  }

  /**
   * Lets an operation of the owner, or of a delegate, take effect: once. Throws NOT_PERMITTED, INVALID_SIGNATURE for one
   * that was asked for before, and UPSTREAM_UNAVAILABLE or UNEXPECTED_ANSWER where the core node cannot be asked for
   * the owner's delegates.
   */
  async permit(
    request: SignedRequest,
    owner: string | undefined,
    { name, type }: Operated = OPERATED.instance,
  ): Promise<OwnerOperation> {
    const signed = await this.identify(request);
    if (owner === undefined)
      throw new AppError('INSTANCE_NOT_READY', 'the owner of the instance is not known yet');
    if (
      normaliseAddress(owner) !== signed.address &&
      !mayOperate(await this.#readAuthorizations(owner), signed.address, type)
    )
      throw new AppError(
        'NOT_PERMITTED',
        `only the owner of the ${name} and the owner's delegates may do this`,
      );
    if (request.method !== 'GET' || request.isStream) await this.note(signed, owner);
    return signed;
  }

  /**
   * What was signed counts once, by who signed it and what it says: not by its spelling, nor by its signature, which has
   * two forms. Throws as Replays.note does.
   * @param owner whose share it counts in
   */
  async note({ address, digest }: OwnerOperation, owner: string): Promise<void> {
    const { replays, now } = this.#options;
    await replays.note(normaliseAddress(owner), `${address} ${digest}`, now());
  }

  /** Anybody may ask for an owner's instance, and has this read: it is of bounded size, and a few are read at a time. */
  async #readAuthorizations(owner: string): Promise<unknown> {
    using _slot = await this.#readings.take();
    const limit = { bytesMax: AUTHORIZATIONS_BYTES_MAX };
    return fieldsOf(await readAggregate(this.#options.coreUrl, owner, SECURITY_KEY, limit))[AUTHORIZATIONS];
  }
}
