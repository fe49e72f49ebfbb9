import {
  AppError,
  DERIVED_KINDS,
  type DerivedDigests,
  type DerivedKind,
  type DerivedTrust,
  derivedDigestsOf,
  derivedFactsOf,
  ownerOf,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { STATE_API } from '@skerry/protocol/api/core/state';
import { call } from './call.ts';
import { readPages } from './pages.ts';
import { saysNothing } from './reads/says-nothing.ts';
import {
  type PatientSource,
  patientSource,
  type RecomputedDigest,
  type RecomputeOptions,
  readLater,
  TRIES,
} from './recompute-digest.ts';
import type { RefusedMessage } from './scoring/published.ts';
import { type ListedMessage, type SignedMessageSource, verifyListed } from './signed-message.ts';

/** Digests of derived state, computed anew out of signed messages. */
export interface RecomputedDerived {
  readonly kinds: Readonly<Record<DerivedKind, RecomputedDigest>>;
  /** Signed messages that were checked. */
  readonly verified: number;
  /** Messages that are not what their senders signed, or that no core node takes. */
  readonly refused: readonly RefusedMessage[];
  /** Messages that were signed for somebody else: that the owner permits it is the node's word. */
  readonly onBehalf: number;
}

/** As many as come with what proves them. */
const MESSAGES_PER_PAGE = 100;

/** Which messages each kind follows from. */
const TYPES = ['POST', 'AGGREGATE', 'STORE', 'PROGRAM'] as const;
const KINDS_OF: Readonly<Record<(typeof TYPES)[number], readonly DerivedKind[]>> = {
  POST: ['posts', 'credits', 'measurements'],
  AGGREGATE: ['aggregates'],
  STORE: ['files'],
  PROGRAM: ['programs'],
};

type Facts = ReturnType<typeof derivedFactsOf>;

class Reading {
  readonly #source: PatientSource;
  readonly #trust: DerivedTrust;
  readonly #options: RecomputeOptions;
  readonly facts = new Map<string, Facts>();
  readonly refused: RefusedMessage[] = [];
  onBehalf = 0;
  read = 0;

  constructor(source: PatientSource, trust: DerivedTrust, options: RecomputeOptions) {
    this.#source = source;
    this.#trust = trust;
    this.#options = options;
  }

  async #take(row: ListedMessage): Promise<void> {
    try {
      const message = await this.#source.patiently(() => verifyListed(this.#source, row));
      if (message.itemHash !== row.item_hash)
        throw new AppError('HASH_MISMATCH', `the core node returned another message for ${row.item_hash}`);
      this.facts.set(message.itemHash, derivedFactsOf(message, this.#trust));
      if (ownerOf(message.sender, message.content ?? {}) !== message.sender) this.onBehalf++;
    } catch (error) {
      if (!(error instanceof AppError) || saysNothing(error)) throw error;
      this.refused.push({ itemHash: row.item_hash, code: error.code, message: error.message });
    }
  }

  /** @returns whether all messages of the type were read */
  async readType(type: string): Promise<boolean> {
    const { coreUrl, signal, patiently } = this.#source;
    const paging = { pagination: MESSAGES_PER_PAGE, sortOrder: 1, bodies: 'shared' } as const;
    const filter = { msgTypes: type, ...paging };
    const readPage = (place: object) =>
      patiently(() =>
        call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, { query: { ...filter, ...place } }, { signal }),
      );
    let ofType = 0;
    for await (const { messages } of readPages(readPage)) {
      ofType += messages.length;
      if (ofType > this.#options.max) return false;
      for (const row of messages) await this.#take(row);
      this.read += messages.length;
      this.#options.onProgress?.(this.read);
    }
    return true;
  }
}

const isCutOf = (said: DerivedDigests, max: number, type: keyof typeof KINDS_OF) =>
  KINDS_OF[type].some((kind) => said[kind].count > max);

interface Attempt extends RecomputedDerived {
  readonly isSettled: boolean;
}

async function compareDerived(
  source: PatientSource,
  trust: DerivedTrust,
  options: RecomputeOptions,
): Promise<Attempt> {
  const { coreUrl, signal, patiently } = source;
  const { cursor, kinds: said } = await patiently(() =>
    call(coreUrl, STATE_API.getDerivedDigests, {}, { signal }),
  );
  const reading = new Reading(source, trust, options);
  const cut = new Set<DerivedKind>();
  for (const type of TYPES) {
    const isWhole = !isCutOf(said, options.max, type) && (await reading.readType(type));
    if (!isWhole) for (const kind of KINDS_OF[type]) cut.add(kind);
  }
  const { byHash, isWhole } = await readLater(source, cursor);
  // What came later is taken out again. What went is not in the list any more: then it is read anew.
  const facts = [...reading.facts].flatMap(([hash, own]) => (byHash.has(hash) ? [] : own));
  const computed = derivedDigestsOf(facts);
  const compare = (kind: DerivedKind): RecomputedDigest => {
    const isCut = cut.has(kind);
    const isSame = !isCut && said[kind].digest === computed[kind].digest;
    return { said: said[kind], computed: computed[kind], isSame, isCut };
  };
  return {
    kinds: {
      ...{ posts: compare('posts'), aggregates: compare('aggregates'), credits: compare('credits') },
      ...{ files: compare('files'), measurements: compare('measurements'), programs: compare('programs') },
    },
    ...{ verified: reading.facts.size, refused: reading.refused, onBehalf: reading.onBehalf },
    isSettled: isWhole && ![...byHash.values()].includes('went'),
  };
}

/**
 * Computes the digests of posts, aggregates, credits, files, measurements and programs anew, each out of the signed messages that a core
 * node lists. That the list is the network's it does not show. Throws what `call` throws. @param trust whose messages count
 */
export async function recomputeDerivedDigests(
  source: SignedMessageSource,
  trust: DerivedTrust,
  options: RecomputeOptions,
): Promise<RecomputedDerived> {
  const patient = patientSource(source, options);
  for (let attempt = 1; ; attempt++) {
    const { isSettled, ...compared } = await compareDerived(patient, trust, options);
    const isRight = DERIVED_KINDS.every((kind) => compared.kinds[kind].isSame || compared.kinds[kind].isCut);
    if (isRight || (isSettled && attempt > 1) || attempt === TRIES) return compared;
  }
}
