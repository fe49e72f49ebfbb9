import { type ShortKey, textOfShortKey } from '@skerry/protocol';
import type { NodeSet } from './node-set.ts';
import { MISSING_MAX } from './session.ts';

/** What a process that only compares expects of one peer: another process on the database fetches it. */
export class Awaited {
  readonly #set: Pick<NodeSet, 'has'>;
  /** What the last comparison found missing, in its order; undefined where there was none, or what it found was given up. */
  #keys: readonly ShortKey[] | undefined;
  #hasCome = false;
  /** What did not come while what is behind it did. Sessions fetch in order: it was this one's turn, too. */
  readonly #passed = new Set<string>();
  /** What was passed over and did not come for as long as the peer was waited for: this node refuses it, or it never comes. */
  #givenUp: ReadonlySet<string> = new Set();

  constructor(set: Pick<NodeSet, 'has'>) {
    this.#set = set;
  }

  /** Before a comparison. @returns how much has come of what the one before found missing at this peer */
  look(): number {
    const keys = this.#keys ?? [];
    const last = keys.findLastIndex((key) => this.#set.has(key));
    const passed = keys.slice(0, last + 1).filter((key) => !this.#set.has(key));
    for (const key of passed) this.#passed.add(textOfShortKey(key));
    const left = keys.length - (last + 1) + passed.length;
    this.#hasCome = this.#keys !== undefined && left === 0;
    this.#keys = undefined;
    return keys.length - left;
  }

  /**
   * What a comparison found. @param missing up to MISSING_MAX, in order: there may be more where it is as many.
   * @param isOver whether the peer is not waited for any more: what was passed over is given up. Where nothing else has come
   * either, it may be that nobody fetches
   * @returns whether nothing is awaited, or what was awaited the last time has come: while messages come in, something is
   * always on its way
   */
  note(missing: readonly ShortKey[], isOver: boolean): boolean {
    const isGivenUp = (key: ShortKey) => this.#givenUp.has(textOfShortKey(key));
    const left = missing.filter((key) => !isGivenUp(key));
    if (missing.length >= MISSING_MAX) {
      this.#keys = left;
      this.#passed.clear();
      return false;
    }
    const texts = new Set(missing.map(textOfShortKey));
    for (const text of this.#passed) if (!texts.has(text)) this.#passed.delete(text);
    const isDropped = (key: ShortKey) => isOver && this.#passed.has(textOfShortKey(key));
    const awaited = left.filter((key) => !isDropped(key));
    this.#givenUp = new Set(missing.filter((key) => isGivenUp(key) || isDropped(key)).map(textOfShortKey));
    // Where all the rest is given up, what comes next says whether the peer is in step but for that.
    this.#keys = left.length > 0 && awaited.length === 0 ? undefined : awaited;
    return left.length === 0 || this.#hasCome;
  }
}
