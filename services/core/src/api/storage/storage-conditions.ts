import type { ByteRange } from '../../store/files/blob-store.ts';

/** What a request for a file asks for (RFC 9110, sections 13 and 14). Header values as they came. */
export interface ReadRequest {
  readonly method: string;
  readonly range?: string | undefined;
  readonly ifRange?: string | undefined;
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

export type ReadDecision =
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly range: ByteRange }
  | { readonly kind: 'unsatisfiable' }
  | { readonly kind: 'not modified' }
  | { readonly kind: 'other version' };

/** One range: `first-`, `first-last` or `-suffix`. Fifteen digits are a petabyte; more is not a range. */
const ONE_RANGE = /^bytes[ \t]*=[ \t]*(?:(\d{1,15})-(\d{1,15})?|-(\d{1,15}))[ \t]*$/i;

/**
 * The part of `sizeBytes` that a `Range` header asks for. What is not one range of bytes (another unit, several ranges,
 * malformed) is ignored, as RFC 9110, section 14.2 allows: undefined means everything.
 */
export function parseRange(header: string, sizeBytes: number): ByteRange | 'unsatisfiable' | undefined {
  const match = ONE_RANGE.exec(header);
  if (!match) return undefined;
  const [, first, last, suffix] = match;
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), sizeBytes);
    return length === 0 ? 'unsatisfiable' : { first: sizeBytes - length, last: sizeBytes - 1 };
  }
  const from = Number(first);
  const to = last === undefined ? sizeBytes - 1 : Number(last);
  if (last !== undefined && to < from) return undefined;
  return from >= sizeBytes ? 'unsatisfiable' : { first: from, last: Math.min(to, sizeBytes - 1) };
}

/** Whether a list of entity tags names this one. `*` names any. Tags of ours hold neither commas nor quotes. */
function namesTag(list: string, etag: string, isWeakEnough: boolean): boolean {
  return list
    .split(',')
    .map((tag) => tag.trim())
    .some((tag) => tag === '*' || tag === etag || (isWeakEnough && tag === `W/${etag}`));
}

/** The order of RFC 9110, section 13.2.2. There is no date to compare with: a file's name is its content. */
export function decideRead(request: ReadRequest, etag: string, sizeBytes: number): ReadDecision {
  if (request.ifMatch !== undefined && !namesTag(request.ifMatch, etag, false))
    return { kind: 'other version' };
  if (request.ifNoneMatch !== undefined && namesTag(request.ifNoneMatch, etag, true))
    return { kind: 'not modified' };
  if (request.method !== 'GET' || request.range === undefined) return { kind: 'whole' };
  if (request.ifRange !== undefined && request.ifRange.trim() !== etag) return { kind: 'whole' };
  const range = parseRange(request.range, sizeBytes);
  if (range === undefined) return { kind: 'whole' };
  return range === 'unsatisfiable' ? { kind: 'unsatisfiable' } : { kind: 'part', range };
}

/** Types that a browser shows without running anything of them. Everything else is offered for saving. */
const INERT =
  /^(?:image\/(?!svg)[a-z0-9.+-]+|(?:audio|video|font)\/[a-z0-9.+-]+|text\/(?:plain|csv|markdown)|application\/json)$/;

export const dispositionOf = (contentType: string) => (INERT.test(contentType) ? 'inline' : 'attachment');
