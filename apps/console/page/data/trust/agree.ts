import { fields, maybe, type Reader, rows, text } from '../../pure/read.ts';
import {
  type Agreement,
  type Answered,
  type Answerer,
  agreementOf,
  isDisputed,
  otherNodes,
  sameOrigin,
} from '../../pure/trust/agree.ts';
import type { CoreFact } from '../../workers/core-keys.ts';
import { ask } from '../ask.ts';
import { failureOf } from '../failure.ts';
import { useNetwork } from '../network.ts';
import type { Proof } from '../prove.ts';
import { useCore } from '../questions.ts';
import { type Resource, useResource } from '../resource.ts';
import { verify } from '../workers.ts';
import { believed } from './believed.ts';

/** The same question to several core nodes of the network. */

/** Nodes that are asked beside the one that everything begins at. */
const OTHERS_MAX = 5;
const EVERY_MS = 30_000;
/** Nodes take a moment to have the same: those that differ are asked again. */
const TRIES = 3;
const AGAIN_MS = 2_000;

const readSync = fields({ peers: rows(fields({ name: text, address: maybe(text), state: text })) });
const NOT_ASKED = ['self', 'banned'];

const useSync = () => useCore('/api/v0/sync/status', readSync, EVERY_MS);

/** Other core nodes: the reader's own, and the peers of this one, by its word. */
function useOtherNodes(): readonly string[] | undefined {
  const { coreUrl } = useNetwork();
  const sync = useSync();
  const own = believed.value.core_nodes ?? [];
  if (!sync.value && !sync.failure) return undefined;
  const peers = sync.value?.peers.filter(({ state }) => !NOT_ASKED.includes(state)) ?? [];
  return otherNodes(coreUrl, [...own, ...peers.map(({ name }) => name)], OTHERS_MAX);
}

interface Question<T> {
  readonly path: string;
  readonly reader: Reader<T>;
  /** What is compared of an answer. */
  readonly say: (answer: T) => string;
  readonly accepts?: readonly number[];
}

async function askOne<T>(
  url: string,
  { path, reader, say, accepts = [] }: Question<T>,
  signal: AbortSignal,
): Promise<Answered> {
  try {
    return { url, said: say(await ask(`${url}${path}`, reader, signal, { accepts })), why: null };
  } catch (error) {
    signal.throwIfAborted();
    return { url, said: null, why: failureOf(error).message };
  }
}

async function askAll<T>(
  urls: readonly string[],
  question: Question<T>,
  signal: AbortSignal,
): Promise<readonly Answered[]> {
  for (let attempt = 1; ; attempt++) {
    const answers = await Promise.all(urls.map((url) => askOne(url, question, signal)));
    if (!isDisputed(answers) || attempt === TRIES) return answers;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    signal.throwIfAborted();
  }
}

export interface Asked extends Resource<readonly Answered[]> {
  /** Whether the keys that the nodes are said to have answer at their URLs, in the order of the answers. */
  readonly keys: Proof<readonly CoreFact[]>;
  /** Undefined while nobody has answered, or it is not known who did. */
  readonly agreement: Agreement | undefined;
}

const answererOf = (fact: CoreFact | undefined): Answerer =>
  fact?.kind === 'wrong' ? 'refuted' : fact?.key == null ? 'unproven' : { key: fact.key };

/** What this core node and others say. */
export function useAgreement<T>(question: Question<T>): Asked {
  const { coreUrl } = useNetwork();
  const others = useOtherNodes();
  const urls = others && [coreUrl, ...others];
  const asked = useResource<readonly Answered[] | undefined>(
    urls ? `${question.path} ${urls.join(' ')}` : '',
    (signal) => (urls ? askAll(urls, question, signal) : Promise.resolve(undefined)),
    urls ? EVERY_MS : Number.POSITIVE_INFINITY,
  );
  const keys = useCoreKeys(urls);
  const facts = keys.kind === 'proven' ? keys.value : undefined;
  const isKnown = keys.kind !== 'waiting' || urls?.length === 1;
  const agreement =
    asked.value && isKnown ? agreementOf(asked.value, (at) => answererOf(facts?.[at])) : undefined;
  return { ...asked, keys, agreement };
}

const readStatus = fields({ status: text });

/** What becomes of a message, by several nodes. */
export const useStatusAgreement = (hash: string) =>
  useAgreement({
    path: `/api/v0/messages/${encodeURIComponent(hash)}/status`,
    reader: readStatus,
    // A refusal has this status.
    say: ({ status }) => (status === 'error' ? 'not known' : status),
    accepts: [404],
  });

/** Whether the keys that nodes are said to have answer at these URLs, in their order. Asked again: nodes go away and come back. */
function useCoreKeys(urls: readonly string[] | undefined): Proof<readonly CoreFact[]> {
  const { coreUrl, info } = useNetwork();
  const sync = useSync();
  const addressOf = (url: string) =>
    sameOrigin(url, coreUrl)
      ? (info?.address ?? null)
      : (sync.value?.peers.find(({ name }) => sameOrigin(url, name))?.address ?? null);
  const isKnown = urls !== undefined && info !== undefined && (sync.value ?? sync.failure) !== undefined;
  const cores = isKnown ? urls.map((url) => ({ url, address: addressOf(url) })) : [];
  const { value, failure } = useResource<readonly CoreFact[]>(
    JSON.stringify(['coreKeys', ...cores.map(({ url, address }) => [url, address])]),
    () => verify('coreKeys', { coreUrl, cores }),
    isKnown ? EVERY_MS : Number.POSITIVE_INFINITY,
  );
  if (!isKnown) return { kind: 'waiting' };
  return value ? { kind: 'proven', value } : failure ? { kind: 'failed', failure } : { kind: 'waiting' };
}
