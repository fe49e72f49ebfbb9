import { requestJson } from '@skerry/client';
import { AppError, normaliseAddress, OWNER_HEADERS, verifyOwnerPass } from '@skerry/protocol';
import { mayOperate } from './delegation.ts';
import { Replays } from './replays.ts';

export interface AccessOptions {
  readonly coreUrl: string;
  /** This node's name in what owners sign. */
  readonly domain: () => string;
  readonly now: () => number;
}

/** What of a request says who asks, and for what. */
export interface SignedRequest {
  readonly publicKey: unknown;
  readonly operation: unknown;
  readonly method?: string | undefined;
  readonly path?: string | undefined;
}

/** The parts of an HTTP request that owners sign. */
export function signedRequestOf(request: {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly method: string;
  readonly url: string;
}): SignedRequest {
  const { headers, method, url } = request;
  return {
    publicKey: headers[OWNER_HEADERS.publicKey],
    operation: headers[OWNER_HEADERS.operation],
    method,
    path: url.split('?', 1)[0] ?? '',
  };
}

/** Decides whether somebody may operate an instance: its owner, or whom the owner's aggregate `security` names. */
export class OwnerAccess {
  readonly #options: AccessOptions;
  readonly #replays = new Replays();

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Who signed. Throws what verifyOwnerPass does, and INVALID_SIGNATURE for a change that was asked for before. */
  async identify(request: SignedRequest): Promise<string> {
    const { domain, now } = this.#options;
    const { method, path, publicKey, operation } = request;
    const nowMs = now();
    const sender = await verifyOwnerPass({ publicKey, operation }, { domain: domain(), method, path, nowMs });
    const isChange = method !== undefined && method !== 'GET';
    if (isChange && !this.#replays.isNew(String(operation), nowMs))
      throw new AppError('INVALID_SIGNATURE', 'this very operation was asked for before; sign it anew');
    return sender;
  }

  /** Throws NOT_PERMITTED, and UPSTREAM_UNAVAILABLE where the core node cannot be asked for the owner's delegates. */
  async permit(request: SignedRequest, owner: string | undefined): Promise<void> {
    const sender = await this.identify(request);
    if (owner === undefined)
      throw new AppError('INSTANCE_NOT_READY', 'the owner of the instance is not known yet');
    if (normaliseAddress(owner) === sender) return;
    if (!mayOperate(await this.#readAuthorizations(owner), sender))
      throw new AppError(
        'NOT_PERMITTED',
        'only the owner of the instance, and whom the owner names, may do this',
      );
  }

  async #readAuthorizations(owner: string): Promise<unknown> {
    const url = `${this.#options.coreUrl}/api/v0/aggregates/${encodeURIComponent(owner)}.json?keys=security`;
    try {
      const { data } = await requestJson<{ data?: { security?: { authorizations?: unknown } } }>(url);
      return data?.security?.authorizations;
    } catch (error) {
      if (error instanceof AppError && error.kind === 'missing') return undefined;
      throw error;
    }
  }
}
