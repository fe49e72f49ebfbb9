/** Why an endpoint did not give what it was asked for. */
export type RpcFailure =
  /**
   * `blocks`: a range that it says would do; `isHere`: of the blocks that were asked for, which says nothing of others; `isSent`: it
   * refused nothing, but sent more than is read.
   */
  | {
      readonly kind: 'range_too_large';
      readonly blocks?: number;
      readonly isHere?: true;
      readonly isSent?: true;
    }
  | { readonly kind: 'rate_limited'; readonly retryAfterMs?: number }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'unreachable'; readonly reason: string }
  /** It does not know a block that others know. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'malformed'; readonly reason: string }
  /** What it says contradicts itself or other endpoints. */
  | { readonly kind: 'lie'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string };

export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly failure: RpcFailure;

  constructor(failure: RpcFailure) {
    super('reason' in failure ? `${failure.kind}: ${failure.reason}` : failure.kind);
    this.failure = failure;
  }
}

const REASON_CHARS = 200;
const RETRY_AFTER_MAX_MS = 120_000;

const METHOD_NOT_FOUND = -32601;
const LIMIT_EXCEEDED = -32005;

const STALE =
  /unknown block|block not found|header not found|out ?of ?range ?error|beyond current head|not yet available|after last accepted|block height is \d+ but requested/i;
const UNSUPPORTED =
  /method .*(not (found|supported|available|exist)|is disabled)|does not exist\/is not available/i;
const RATE =
  /rate.?limit|too many requests|requests? per second|compute units|throughput|capacity|quota|request limit|try again/i;
const RANGE =
  /range|more than \d+ (results|logs)|too many (results|logs|blocks)|response size|size exceeded|too large|too wide|limit(ed)? to|max(imum)? (of )?\d+ (blocks|results|logs)|timed? ?out|exceed/i;
const SUGGESTED = /\[\s*(0x[0-9a-f]+)\s*,\s*(0x[0-9a-f]+)\s*\]/i;
const BLOCK_COUNT =
  /(?:range[^\d]{0,24}|up to (?:a )?|limited to (?:a )?|max(?:imum)? (?:of )?)([\d,]{1,9})( ?k)?\b(?! ?(?:results|logs|bytes|mb))/i;
/** What is read of a message, whose length is whatever an endpoint sends. */
const MESSAGE_CHARS = 2_000;

export interface JsonRpcError {
  readonly code?: unknown;
  readonly message?: unknown;
}

/** What an endpoint's error object means. Providers agree on few of the codes: mostly the sentence decides. */
export function classifyError(error: JsonRpcError): RpcFailure {
  const message = typeof error.message === 'string' ? error.message.slice(0, MESSAGE_CHARS) : '';
  const reason = message.slice(0, REASON_CHARS);
  if (error.code === METHOD_NOT_FOUND || UNSUPPORTED.test(message)) return { kind: 'unsupported' };
  if (STALE.test(message)) return { kind: 'stale' };
  const isRange = RANGE.test(message);
  if (RATE.test(message) && !/block range|results|logs/i.test(message)) return { kind: 'rate_limited' };
  if (isRange) return { kind: 'range_too_large', ...suggestedBlocks(message) };
  if (error.code === LIMIT_EXCEEDED || error.code === 429) return { kind: 'rate_limited' };
  return { kind: 'refused', reason };
}

function suggestedBlocks(message: string): { blocks?: number; isHere?: true } {
  const range = SUGGESTED.exec(message);
  if (range) {
    const blocks = Number(range[2]) - Number(range[1]) + 1;
    return isBlocks(blocks) ? { blocks, isHere: true } : {};
  }
  const [, digits = '', thousands] = BLOCK_COUNT.exec(message) ?? [];
  const blocks = Number(digits.replaceAll(',', '')) * (thousands === undefined ? 1 : 1_000);
  return isBlocks(blocks) ? { blocks } : {};
}

const isBlocks = (blocks: number): boolean => Number.isSafeInteger(blocks) && blocks >= 1;

/** What an HTTP status other than 200 means. */
export function classifyStatus(status: number, retryAfter: string | null): RpcFailure {
  if (status === 429 || status === 503) {
    const seconds = Number(retryAfter);
    return retryAfter !== null && Number.isFinite(seconds) && seconds >= 0
      ? { kind: 'rate_limited', retryAfterMs: Math.min(seconds * 1000, RETRY_AFTER_MAX_MS) }
      : { kind: 'rate_limited' };
  }
  if (status === 413) return { kind: 'range_too_large' };
  if (status === 408 || status === 504 || status === 524) return { kind: 'timeout' };
  return { kind: 'unreachable', reason: `HTTP ${status}` };
}
