import { createHash } from 'node:crypto';
import { backoffMs, partsMaxOf, Slots } from '@skerry/kit';
import type { BlockId } from '@skerry/kit/unixfs';
import { AppError } from '@skerry/protocol';
import { watchIdle } from './idle.ts';
import { IPFS_LIMITS } from './limits.ts';

const REST_BASE_MS = 500;
const REST_MAX_MS = 60_000;

/** Where blocks come from that are not here. */
export interface BlockSource {
  /** The bytes of the block, checked against its digest. Throws CID_NOT_FOUND, IPFS_TIMEOUT, IPFS_UNAVAILABLE, OVERLOADED. */
  fetch(id: BlockId, signal: AbortSignal): Promise<Uint8Array>;
}

export interface GatewayOptions {
  /** Base addresses, such as `https://host` or another core node's API root; asked for anew at each block. */
  readonly urls: () => readonly string[];
  readonly timeoutMs: number;
  /** Milliseconds since whenever; never set. */
  readonly now?: () => number;
}

interface Health {
  failures: number;
  restUntilMs: number;
}

/** Blocks by the trustless gateway protocol (IPFS specifications, "Trustless Gateway": `?format=raw`); nobody is believed. */
export function createGatewaySource({
  urls,
  timeoutMs,
  now = () => performance.now(),
}: GatewayOptions): BlockSource {
  const slots = new Slots(IPFS_LIMITS.slots, {
    waitingMax: IPFS_LIMITS.waiting,
    waitMs: IPFS_LIMITS.slotWaitMs,
    refusal: 'too many IPFS requests are running',
  });
  const healths = new Map<string, Health>();
  const healthOf = (url: string) => {
    const known = healths.get(url) ?? { failures: 0, restUntilMs: 0 };
    healths.set(url, known);
    return known;
  };
  const note = (health: Health, error: unknown) => {
    // Not to have a block is no fault.
    const isFine = error === undefined || (error as AppError).code === 'CID_NOT_FOUND';
    health.failures = isFine ? 0 : health.failures + 1;
    health.restUntilMs = isFine ? 0 : now() + backoffMs(health.failures, REST_BASE_MS, REST_MAX_MS);
  };
  return {
    async fetch(id, signal) {
      let failure = new AppError('CID_NOT_FOUND', `no source has ${id.text}`);
      const known = urls();
      for (const url of healths.keys()) if (!known.includes(url)) healths.delete(url);
      const awake = known.filter((url) => healthOf(url).restUntilMs <= now());
      if (awake.length === 0 && known.length > 0)
        failure = new AppError('IPFS_UNAVAILABLE', 'every source failed a moment ago');
      using _slot = await slots.take();
      for (const url of shuffled(awake)) {
        signal.throwIfAborted();
        try {
          const bytes = await fetchBlock(url, id, timeoutMs, signal);
          note(healthOf(url), undefined);
          return bytes;
        } catch (error) {
          if (signal.aborted || !(error instanceof AppError)) throw error;
          note(healthOf(url), error);
          // What says most about why is told: a fault before a plain no.
          if (error.code !== 'CID_NOT_FOUND') failure = error;
        }
      }
      throw failure;
    },
  };
}

function shuffled<T>(items: readonly T[]): T[] {
  const from = Math.floor(Math.random() * items.length);
  return [...items.slice(from), ...items.slice(0, from)];
}

async function fetchBlock(
  url: string,
  { text, digest }: BlockId,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { host } = new URL(url);
  using idle = watchIdle(host, timeoutMs);
  try {
    const response = await fetch(`${url.replace(/\/+$/, '')}/ipfs/${text}?format=raw`, {
      headers: { accept: 'application/vnd.ipld.raw' },
      redirect: 'error',
      signal: AbortSignal.any([signal, idle.signal]),
    });
    if (!response.ok) {
      await response.body?.cancel();
      if (response.status === 404 || response.status === 410)
        throw new AppError('CID_NOT_FOUND', `${host} does not have ${text}`);
      throw new AppError('IPFS_UNAVAILABLE', `${host} returned ${response.status}`);
    }
    const bytes = await readUpTo(response, IPFS_LIMITS.blockBytes, idle.note);
    if (bytes === undefined || createHash('sha256').update(bytes).digest('hex') !== digest)
      throw new AppError('IPFS_UNAVAILABLE', `${host} sent something other than ${text}`);
    return bytes;
  } catch (error) {
    if (error instanceof AppError || signal.aborted) throw error;
    if (idle.signal.aborted) throw idle.signal.reason;
    throw new AppError('IPFS_UNAVAILABLE', `${host} cannot be reached`, { cause: error });
  }
}

/** The body, or undefined where it is longer, or comes in parts of a few bytes: whoever reads it leaves early. */
export async function readUpTo(
  response: Response,
  limitBytes: number,
  note: () => void = () => {},
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  const partsMax = partsMaxOf(limitBytes);
  let size = 0;
  for await (const chunk of response.body ?? []) {
    note();
    size += chunk.length;
    if (size > limitBytes || chunks.push(chunk) > partsMax) return undefined;
  }
  return Buffer.concat(chunks, size);
}
