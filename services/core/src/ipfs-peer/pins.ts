import { createParser } from '@skerry/protocol';
import { Type } from '@skerry/protocol/type';
import { isCidText } from '../store/ipfs/cid.ts';
import { readUpTo } from '../store/ipfs/gateways.ts';
import { PEER_LIMITS } from './limits.ts';

const PAGE_BYTES = 64 * 1024 * 1024;
const PAGE_MS = 30_000;
/** A message that was dated earlier, or waited for its file, comes into force behind newer ones: how often all are read. */
const WHOLE_EVERY_MS = 3_600_000;

interface Page {
  readonly cids: string[];
  /** Of the messages, newest first. */
  readonly hashes: string[];
  readonly next: string | undefined;
}

const PageView = Type.Object({
  messages: Type.Array(Type.Object({ item_hash: Type.String(), content: Type.Unknown() })),
  next_cursor: Type.Optional(Type.Union([Type.String(), Type.Null()])),
});
const parsePage = createParser(PageView, 'the page', 'UNEXPECTED_ANSWER');

/** What a message keeps: `item_hash` of a STORE, `hash` of an IPFS_PIN. */
function fileOf(content: unknown): string | undefined {
  const { item_hash: stored, hash: pinned } = (content ?? {}) as Readonly<Record<string, unknown>>;
  return [stored, pinned].find((hash): hash is string => typeof hash === 'string' && isCidText(hash));
}

async function readPage(coreUrl: string, size: number, cursor: string, signal: AbortSignal): Promise<Page> {
  const query = new URLSearchParams({
    msgTypes: 'STORE,IPFS_PIN',
    pagination: String(size),
    cursor,
  });
  const response = await fetch(`${coreUrl}/api/v0/messages.json?${query}`, {
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(PAGE_MS)]),
  });
  if (!response.ok) throw new Error(`the core node returned ${response.status}`);
  const body = await readUpTo(response, PAGE_BYTES);
  if (!body) throw new Error('the core node sent a page that is too long');
  const { messages, next_cursor: next } = parsePage(JSON.parse(body.toString()));
  return {
    cids: messages.map(({ content }) => fileOf(content)).filter((cid) => cid !== undefined),
    hashes: messages.map(({ item_hash }) => item_hash),
    next: next ?? undefined,
  };
}

/**
 * CIDs that messages keep on a core node, newest first: up to the message that was the newest last time, and from time to
 * time all.
 */
export class PinList {
  readonly #coreUrl: string;
  readonly #now: () => number;
  readonly #page: number;
  #newest: string | undefined;
  #wholeAtMs = Number.NEGATIVE_INFINITY;

  /**
   * @param now milliseconds of a clock that never goes back
   * @param page messages that are read at once
   */
  constructor(coreUrl: string, now: () => number = () => performance.now(), page: number = PEER_LIMITS.page) {
    this.#coreUrl = coreUrl;
    this.#now = now;
    this.#page = page;
  }

  async readNew(signal: AbortSignal): Promise<string[]> {
    const nowMs = this.#now();
    const isWhole = this.#wholeAtMs + WHOLE_EVERY_MS <= nowMs;
    const cids = new Set<string>();
    let newest: string | undefined;
    let cursor = '';
    while (cids.size < PEER_LIMITS.announced) {
      const page = await readPage(this.#coreUrl, this.#page, cursor, signal);
      newest ??= page.hashes[0];
      for (const cid of page.cids) cids.add(cid);
      const isKnown = !isWhole && this.#newest !== undefined && page.hashes.includes(this.#newest);
      if (isKnown || page.next === undefined) break;
      cursor = page.next;
    }
    this.#newest = newest ?? this.#newest;
    if (isWhole) this.#wholeAtMs = nowMs;
    return [...cids];
  }
}
