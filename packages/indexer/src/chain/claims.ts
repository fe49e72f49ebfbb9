import { createEventDecoder, type EventDecoder } from '../abi/decode.ts';
import { hashText } from '../abi/topic.ts';
import { type EventDefinition, signatureOf } from '../abi/types.ts';
import { type BloomBits, bloomBitsOf, mayContain } from './bloom.ts';
import type { Log } from './shape.ts';

/** Stands for the logs of a contract whose first topic is none of its declared events: the anonymous ones. */
export const ANY_TOPIC = '*';

/** The event type of logs that fit none of the contract's declarations. */
const UNKNOWN_EVENT_ID = 0;

export interface ClaimedEvent {
  readonly id: number;
  readonly definition: EventDefinition;
}

/** What is wanted of one contract. Plain data: it is sent to worker threads. */
export interface Claim {
  readonly contractId: number;
  readonly address: string;
  /** First topics, or ANY_TOPIC. */
  readonly topics: readonly string[];
  /** Every event of the contract's ABIs, newest version first: also those that this claim does not want. */
  readonly events: readonly ClaimedEvent[];
  /** Blocks before it are not wanted. */
  readonly fromBlock: number;
}

interface CompiledEvent {
  readonly id: number;
  readonly decoder: EventDecoder;
}

interface CompiledEvents {
  /** By their first topic. */
  readonly named: ReadonlyMap<string, readonly CompiledEvent[]>;
  readonly anonymous: readonly CompiledEvent[];
  /** Name or signature -> first topics, ANY_TOPIC for the anonymous ones. */
  readonly topics: ReadonlyMap<string, ReadonlySet<string>>;
}

interface CompiledClaim extends Pick<CompiledEvents, 'named' | 'anonymous'> {
  readonly contractId: number;
  readonly fromBlock: number;
  readonly topics: ReadonlySet<string>;
  readonly any: boolean;
  readonly addressBits: BloomBits;
  readonly topicBits: readonly BloomBits[];
}

export interface Wanted {
  readonly contractId: number;
  readonly eventId: number;
  /** JSON. */
  readonly args: string;
}

/** What is wanted of a chain, ready to be asked of a block or a log. */
export class Claims {
  readonly #byAddress = new Map<string, CompiledClaim>();
  /** For a request: the addresses, and the first topics, or undefined where every topic is wanted. */
  readonly addresses: readonly string[];
  readonly topics: readonly string[] | undefined;

  constructor(claims: readonly Claim[]) {
    for (const claim of claims) this.#byAddress.set(claim.address, compile(claim));
    this.addresses = [...this.#byAddress.keys()];
    this.topics = claims.some((claim) => claim.topics.includes(ANY_TOPIC))
      ? undefined
      : [...new Set(claims.flatMap((claim) => claim.topics))];
  }

  get isEmpty(): boolean {
    return this.addresses.length === 0;
  }

  /** Whether a block's logs may hold something that is wanted. */
  mayBeIn(bloom: string, blockNumber: number): boolean {
    for (const claim of this.#byAddress.values()) {
      if (blockNumber < claim.fromBlock || !mayContain(bloom, claim.addressBits)) continue;
      if (claim.any || claim.topicBits.some((bits) => mayContain(bloom, bits))) return true;
    }
    return false;
  }

  /** What is to be kept of a log, or undefined where it is not wanted. */
  read(log: Log): Wanted | undefined {
    const claim = this.#byAddress.get(log.address);
    if (!claim || log.blockNumber < claim.fromBlock) return undefined;
    const [first] = log.topics;
    const named = first === undefined ? undefined : claim.named.get(first);
    if (named) {
      if (!claim.topics.has(first!)) return undefined;
      return decodeAs(claim, log, named, log.topics.slice(1)) ?? unknownOf(claim, log);
    }
    return claim.any
      ? (decodeAs(claim, log, claim.anonymous, log.topics) ?? unknownOf(claim, log))
      : undefined;
  }
}

function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** A contract of which nothing was declared since has the same list: it is compiled once. */
const compiled = new WeakMap<readonly ClaimedEvent[], CompiledEvents>();

function compileEvents(events: readonly ClaimedEvent[]): CompiledEvents {
  const known = compiled.get(events);
  if (known) return known;
  const named = new Map<string, CompiledEvent[]>();
  const anonymous: CompiledEvent[] = [];
  const topics = new Map<string, string[]>();
  for (const { id, definition } of events) {
    const event = { id, decoder: createEventDecoder(definition) };
    const signature = signatureOf(definition);
    const topic = definition.anonymous ? ANY_TOPIC : hashText(signature);
    if (definition.anonymous) anonymous.push(event);
    else addTo(named, topic, event);
    for (const key of [definition.name, signature]) addTo(topics, key, topic);
  }
  const made = {
    ...{ named, anonymous },
    topics: new Map([...topics].map(([key, list]) => [key, new Set(list)])),
  };
  compiled.set(events, made);
  return made;
}

/** The first topics, or ANY_TOPIC, by which declared events of a name or a signature are read. */
export const topicsNamed = (events: readonly ClaimedEvent[], eventName: string): ReadonlySet<string> =>
  compileEvents(events).topics.get(eventName) ?? new Set();

function compile(claim: Claim): CompiledClaim {
  const { named, anonymous } = compileEvents(claim.events);
  const topics = claim.topics.filter((topic) => topic !== ANY_TOPIC);
  return {
    contractId: claim.contractId,
    fromBlock: claim.fromBlock,
    topics: new Set(topics),
    any: topics.length < claim.topics.length,
    named,
    anonymous,
    addressBits: bloomBitsOf(claim.address),
    topicBits: topics.map(bloomBitsOf),
  };
}

/** The first declaration that the log fits: overloads with one signature differ in what is indexed. */
function decodeAs(
  claim: CompiledClaim,
  log: Log,
  events: readonly CompiledEvent[],
  topics: readonly string[],
): Wanted | undefined {
  for (const { id, decoder } of events) {
    const args = decoder.decode(topics, log.data);
    if (args !== undefined) return { contractId: claim.contractId, eventId: id, args };
  }
  return undefined;
}

/** What does not fit is kept as it came, so that it can be seen. */
const unknownOf = (claim: CompiledClaim, log: Log): Wanted => ({
  contractId: claim.contractId,
  eventId: UNKNOWN_EVENT_ID,
  args: JSON.stringify({ topics: log.topics, data: log.data }),
});
