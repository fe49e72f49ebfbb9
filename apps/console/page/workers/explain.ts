import { call } from '@skerry/client';
import { findLack } from '@skerry/client/room';
import {
  fieldsOf,
  hostnameOf,
  instanceNeeds,
  itemHashOf,
  parseInstanceContent,
  parseProgramContent,
  programNeeds,
  programOf,
  type ResourceNeeds,
  rateOf,
  storageNeeds,
} from '@skerry/protocol';
import { CREDITS_API } from '@skerry/protocol/api/core/credits';
import { NODE_API } from '@skerry/protocol/api/core/node';
import type { Quote } from '../pure/owner/cost.ts';
import { type Words, wordsOf } from '../pure/owner/words.ts';

/** Whose signature is wanted. */
export interface Owner {
  /** The core node that says what things cost. */
  readonly coreUrl: string;
  readonly chain: string;
  readonly address: string;
}

/** What a text means, before it is signed. */
export interface Explained extends Words {
  /** What the network will know the message by; null where it is no message. */
  readonly itemHash: string | null;
  /** Of a machine that is asked for: its four words. */
  readonly hostname: string | null;
  readonly cost: Quote;
}

/** What is to be priced: the content of a message, or the size of a file. */
export type Priced =
  | { readonly type: string; readonly content: unknown }
  | { readonly type: 'file'; readonly bytes: number };

function needsOf(priced: Priced): ResourceNeeds | undefined {
  if ('bytes' in priced) return storageNeeds(priced.bytes);
  if (priced.type === 'INSTANCE') return instanceNeeds(parseInstanceContent(priced.content, true));
  if (priced.type === 'PROGRAM') return programNeeds(programOf(parseProgramContent(priced.content)));
  return undefined;
}

/** So long whoever is to sign waits for the price. */
const QUOTE_MS = 5_000;
/** So long the scheduler has for its advice, which nobody waits for. */
const ADVICE_MS = 30_000;

/** What something costs by the prices that the core node tells; also untold where this tab cannot say what it needs. */
export async function quote(coreUrl: string, priced: Priced): Promise<Quote> {
  try {
    const needs = needsOf(priced);
    if (!needs) return null;
    const [{ prices }, { trust }] = await Promise.all([
      call(coreUrl, CREDITS_API.listPrices, {}, { timeoutMs: QUOTE_MS }),
      call(coreUrl, NODE_API.getInfo, {}, { timeoutMs: QUOTE_MS }),
    ]);
    const price = prices[needs.kind];
    if (!price) return 'untold';
    const rate = rateOf(needs, {
      computeUnit: BigInt(price.compute_unit),
      storageMib: BigInt(price.storage_mib),
    });
    return { nano: String(rate), isEnforced: trust.credit_enforcement.value };
  } catch {
    return 'untold';
  }
}

/**
 * Of a machine that no node has room for, what it would wait for, by the scheduler that the core node names; null also where nobody says.
 * Never rejects. Nobody waits for it: the scheduler may be silent.
 */
export async function lackOf(coreUrl: string, text: string): Promise<string | null> {
  try {
    if (wordsOf(text).type !== 'INSTANCE') return null;
    const { content } = fieldsOf(JSON.parse(text));
    const signal = AbortSignal.timeout(ADVICE_MS);
    const { services } = await call(coreUrl, NODE_API.getInfo, {}, { signal });
    if (services?.scheduler === undefined) return null;
    const lack = await findLack(services.scheduler, parseInstanceContent(content, true), { signal });
    return lack?.sentence ?? null;
  } catch {
    return null;
  }
}

export async function explain({ coreUrl, chain, address }: Owner, text: string): Promise<Explained> {
  const words = wordsOf(text);
  if (words.type === null) return { ...words, itemHash: null, hostname: null, cost: null };
  const itemHash = itemHashOf(chain, address, text);
  const { content } = fieldsOf(JSON.parse(text));
  return {
    ...words,
    itemHash,
    hostname: words.type === 'INSTANCE' ? hostnameOf(itemHash) : null,
    cost: await quote(coreUrl, { type: words.type, content }),
  };
}
