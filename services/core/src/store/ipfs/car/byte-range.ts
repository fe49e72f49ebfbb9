import { AppError } from '@skerry/protocol';
import type { ByteRange } from '../../files/blob-store.ts';

/** `entity-bytes=from:to` (IPFS specifications, "Trustless Gateway"): below zero counts from the end; no `to` is the end. */
export interface AskedBytes {
  readonly from: number;
  readonly to: number | undefined;
}

/** Fifteen digits are a petabyte. */
const FORM = /^(-?\d{1,15}):(-?\d{1,15}|\*)$/;

/** Throws INVALID_PARAMETERS. */
export function parseAskedBytes(text: string): AskedBytes {
  const [, from, to] = FORM.exec(text) ?? [];
  if (from === undefined || to === undefined)
    throw new AppError('INVALID_PARAMETERS', 'entity-bytes is from:to, such as 0:1023, -1024:* or 499:-1000');
  const asked = { from: Number(from), to: to === '*' ? undefined : Number(to) };
  const isReversed = asked.to !== undefined && asked.from < 0 === asked.to < 0 && asked.from > asked.to;
  if (isReversed) throw new AppError('INVALID_PARAMETERS', 'entity-bytes ends before it begins');
  return asked;
}

/** The part of `sizeBytes` that is asked for; undefined where none of it is. */
export function rangeWithin({ from, to }: AskedBytes, sizeBytes: number): ByteRange | undefined {
  const first = from < 0 ? Math.max(0, sizeBytes + from) : from;
  const last = Math.min(sizeBytes - 1, to === undefined ? sizeBytes - 1 : to < 0 ? sizeBytes + to : to);
  return first <= last ? { first, last } : undefined;
}
