import {
  AskError,
  type AskFailure,
  ClientTable,
  createAsker,
  createReach,
  type Handlers,
  type MayReach,
  Slots,
  spellAddress,
} from '@skerry/kit';
import { AppError, nodeProofUrl, parseNodeUrl } from '@skerry/protocol';
import {
  REACHABILITY_ANSWER_BYTES,
  type REACHABILITY_API,
  REACHABILITY_PATH,
  type ReachabilityVerdict,
} from '@skerry/protocol/api/core/reachability';
import type { Rooms } from './rooms.ts';

/** From the first step to the last byte of what the caller answers. */
const TRY_MS = 5_000;
/** A firewall that drops says nothing: what is not connected by then is closed. */
const CONNECT_MS = 3_500;
/** Connections to callers at once; so many more wait, as long as one try takes. */
const TRIES = 16;
const TRIES_WAITING = 64;
/** Tries of prefixes in a minute, for all callers together: nothing shows beforehand that the prefix is the caller's. */
const PREFIXES_PER_MINUTE = 60;
/** OpenSSL's and Node's words for a certificate that is not to be trusted. */
const CERTIFICATE = /CERT|SELF_SIGNED|ERR_TLS|UNABLE_TO/;

const OF_FAILURE: Readonly<Record<AskFailure, ReachabilityVerdict>> = {
  refused: 'NOT_YOURS',
  unconnected: 'NO_CONNECTION',
  untaken: 'NO_ANSWER',
  timeout: 'NO_ANSWER',
  broken: 'NO_ANSWER',
  too_large: 'OTHER_ANSWER',
};

/** What a failed try shows. Throws what is none. */
function verdictOf(error: unknown): ReachabilityVerdict {
  if (!(error instanceof AskError)) throw error;
  return CERTIFICATE.test(error.code ?? '') ? 'BAD_CERTIFICATE' : OF_FAILURE[error.failure];
}

interface Try {
  readonly url: string;
  readonly nonce: string;
  /** The addresses that may be connected to: a name is judged by what it resolves to. */
  readonly mayReach: MayReach;
  readonly signal: AbortSignal;
}

/** The nonce is not part of the question: a page that repeats what it is asked for answers nothing. */
async function tryPlace({ url, nonce, mayReach, signal }: Try): Promise<ReachabilityVerdict> {
  const asker = createAsker({ mayReach });
  try {
    const { body } = await asker.ask(`${url}${REACHABILITY_PATH}`, {
      timeoutMs: TRY_MS,
      connectMs: CONNECT_MS,
      bodyBytesMax: REACHABILITY_ANSWER_BYTES,
      signal,
    });
    return body.toString('latin1').trim() === nonce ? 'REACHED' : 'OTHER_ANSWER';
  } catch (error) {
    return verdictOf(error);
  } finally {
    asker.close();
  }
}

/** Throws INVALID_PARAMETERS. */
function parsePlace(url: string): string {
  try {
    return parseNodeUrl(url);
  } catch (error) {
    throw new AppError('INVALID_PARAMETERS', (error as Error).message, { cause: error });
  }
}

/**
 * Connects to whoever asks, so that a node that joins learns whether others get through to it. Only to the address that the
 * request comes from, or to the one address inside a /64 where a compute node proves it, at a port of its own; no redirect is
 * followed, and nothing of what is answered is told but the verdict (docs/decisions.md 141).
 */
export function reachabilityHandlers({
  clientOf,
  settings,
  signal,
}: Pick<Rooms, 'clientOf' | 'settings' | 'signal'>): Handlers<typeof REACHABILITY_API> {
  const mayReach = createReach(settings.allowPrivate);
  const slots = new Slots(TRIES, {
    waitingMax: TRIES_WAITING,
    waitMs: TRY_MS,
    refusal: 'too many callers are being tried',
  });
  const prefixes = new ClientTable(PREFIXES_PER_MINUTE, 1);

  const tryPrefix = async (prefix: string, nonce: string): Promise<ReachabilityVerdict> => {
    const url = nodeProofUrl(prefix);
    if (!mayReach(new URL(url).hostname.slice(1, -1))) return 'NOT_PUBLIC';
    if (!prefixes.take('', performance.now()).isAllowed)
      throw new AppError('OVERLOADED', 'too many prefixes are being tried; try again in a minute');
    const verdict = await slots.run(() => tryPlace({ url, nonce, mayReach, signal }), signal);
    // Whose it is, is not known: what else is there is nobody's business.
    return verdict === 'REACHED' ? verdict : 'NO_ANSWER';
  };

  return {
    async checkReachability({ body: { url, ipv6_prefix: prefix, nonce }, request }) {
      if ((url === undefined) === (prefix === undefined))
        throw new AppError('INVALID_PARAMETERS', 'either url or ipv6_prefix is required, not both');
      const { address, isRelayed } = clientOf(request);
      if (isRelayed) return { verdict: 'UNKNOWN_CLIENT', seen_as: null };
      if (prefix !== undefined) return { verdict: await tryPrefix(prefix, nonce), seen_as: address };
      const place = parsePlace(url!);
      if (!mayReach(address)) return { verdict: 'NOT_PUBLIC', seen_as: address };
      const isCaller: MayReach = (one) => spellAddress(one) === address;
      const verdict = await slots.run(
        () => tryPlace({ url: place, nonce, mayReach: isCaller, signal }),
        signal,
      );
      return { verdict, seen_as: address };
    },
  };
}
