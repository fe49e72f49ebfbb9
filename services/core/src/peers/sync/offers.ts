import { Shares } from '@skerry/kit';
import { AppError, type ShortKey, shortHashOf, textOfShortKey } from '@skerry/protocol';
import { OFFER_BYTES } from '@skerry/protocol/api/core/sync';
import type { Kysely } from 'kysely';
import type { PassedOn, ReadFrame } from '../../intake/passed-on.ts';
import { shortKeyOfAccepted } from '../../intake/pipeline/statement.ts';
import { readSharedTexts } from '../../state/messages/shared.ts';
import type { Schema } from '../../store/schema.ts';
import { decodeFrames } from './frames.ts';
import type { OfferTally, PeerLink } from './link.ts';
import type { NodeSet } from './node-set.ts';
import type { Reputation } from './reputation.ts';

/**
 * A node that nobody can reach, and that gossips with nobody, offers what it has: the only way in which its messages get
 * out. Whoever takes an offer believes nothing of it but signatures.
 */

/** Messages in one offer. */
const OFFER_MESSAGES = 500;
/** Offers in one session with a peer: more is left to the next one. */
const OFFERS_PER_SESSION = 20;
/** Keys that a peer lacks and that are remembered from one session to the next. */
export const OFFERED_KEYS_MAX = OFFERS_PER_SESSION * OFFER_MESSAGES;
/**
 * Sessions in which a peer was offered a message and still keeps another word of what no hash covers: it will not come to
 * ask, and believes no offer. Then this node gives way, or the two would differ for ever.
 */
const OFFERS_UNTIL_YIELD = 4;
/** Offers that are taken at once. Whoever offers waits for the answer before the next. */
const TAKEN_AT_ONCE = { total: 2, reserve: 0, perClient: 1 };

export interface OffersOptions {
  readonly set: NodeSet;
  readonly source: PassedOn;
  readonly reputation: Reputation;
}

/** Takes offers of anybody: as many at once as do not matter, and none of those who sent what nobody signed. */
export class Offers {
  readonly #options: OffersOptions;
  readonly #taking = new Shares(TAKEN_AT_ONCE);

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  /** @param sender who is held to account, such as its address. Throws NOT_PERMITTED, INVALID_PARAMETERS, RATE_LIMITED, OVERLOADED. */
  async take(body: Buffer, sender: string, isExempt = false): Promise<OfferTally> {
    const { set, reputation } = this.#options;
    const name = `offers of ${sender}`;
    if (reputation.isBanned(name))
      throw new AppError('NOT_PERMITTED', 'too many messages from this sender had no valid signature');
    if (!set.isReady) throw new AppError('OVERLOADED', 'the node is still counting its messages');
    const frames = readOffer(body);
    const place = this.#taking.take({ key: sender, isExempt });
    if (place === 'share')
      throw new AppError('RATE_LIMITED', 'an offer of this sender is being processed', {
        details: { retry_after: 1 },
      });
    if (place === 'all') throw new AppError('OVERLOADED', 'other offers are being processed; try again');
    try {
      const tally = await this.#keep(frames, name);
      reputation.noteForged(name, tally.forged);
      return tally;
    } finally {
      place.release();
    }
  }

  async #keep(frames: readonly Buffer[], from: string): Promise<OfferTally> {
    const { set, source } = this.#options;
    const read = await source.read(frames, from);
    const fresh = read.filter(
      (one: ReadFrame) => 'fault' in one || !set.has(shortKeyOfAccepted(one.accepted)),
    );
    const { taken, forged, refused, later } = await source.keep(fresh);
    return { taken, known: read.length - fresh.length, refused: refused + later, forged };
  }
}

function readOffer(body: Buffer): Buffer[] {
  try {
    return decodeFrames(body, OFFER_MESSAGES);
  } catch (cause) {
    throw new AppError(
      'INVALID_PARAMETERS',
      `an offer is at most ${OFFER_MESSAGES} messages, each with its length`,
      {
        cause,
      },
    );
  }
}

/** What one peer lacked, as of the last session with it. */
export class PeerLacks {
  #before: ReadonlySet<string> = new Set();
  /** The same by the hash part of the key, whether it can take it yet or not; undefined before the first session. */
  #lacked: ReadonlySet<string> | undefined;
  /** It took what it was offered: nobody waits for it to ask. */
  #takesOffers = false;
  /** How often what is offered was offered, one session after another, by the hash part of the key. */
  #offered: ReadonlyMap<string, number> = new Map();

  /**
   * What to offer now: what the peer had time to ask for and did not.
   * @param isTakable whether it would take it now
   */
  decide(lacks: readonly ShortKey[], isTakable: (key: ShortKey) => boolean = () => true): ShortKey[] {
    this.#lacked = new Set(lacks.map(({ id }) => shortHashOf(id)));
    const some = lacks.filter(isTakable).slice(0, OFFERED_KEYS_MAX);
    const offered = some.filter((key) => this.#takesOffers || this.#before.has(textOfShortKey(key)));
    this.#before = new Set(some.map(textOfShortKey));
    this.#offered = new Map(
      offered.map(({ id }) => [shortHashOf(id), (this.#offered.get(shortHashOf(id)) ?? 0) + 1]),
    );
    return offered;
  }

  /**
   * Whether the peer's word of a message that this node has, too, takes the place of its own: nobody believes that one. A peer that
   * merely says so, where another one has it, makes no message later than it was.
   * @param others of the other peers
   */
  yieldsTo({ id }: ShortKey, others: readonly PeerLacks[]): boolean {
    const hash = shortHashOf(id);
    if ((this.#offered.get(hash) ?? 0) < OFFERS_UNTIL_YIELD) return false;
    return others.every(({ lacked }) => lacked === undefined || lacked.has(hash));
  }

  /** By the hash part of the key; undefined before the first session. */
  get lacked(): ReadonlySet<string> | undefined {
    return this.#lacked;
  }

  note({ taken, known }: OfferTally): void {
    if (taken + known > 0) this.#takesOffers = taken > 0;
  }
}

/** Sends a peer what it lacks. @returns how many messages it took. Throws what the link throws. */
export async function offerLacking(
  link: PeerLink,
  keys: readonly ShortKey[],
  lacks: PeerLacks,
  { db, set, signal }: { db: Kysely<Schema>; set: NodeSet; signal: AbortSignal },
): Promise<number> {
  const names = keys.flatMap((short) => {
    const key = set.index.find(short);
    return key ? set.nameOf(key) : [];
  });
  let taken = 0;
  for (let at = 0, offers = 0; at < names.length && offers < OFFERS_PER_SESSION; offers++) {
    const { texts, looked } = await readSharedTexts(db, names.slice(at, at + OFFER_MESSAGES), OFFER_BYTES);
    at += looked;
    if (texts.size === 0) continue;
    const tally = await link.offer([...texts.values()], signal);
    lacks.note(tally);
    taken += tally.taken;
  }
  return taken;
}
