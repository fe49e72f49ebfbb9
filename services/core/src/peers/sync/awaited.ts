import { type ShortKey, textOfShortKey } from '@skerry/protocol';
import type { NodeSet } from './node-set.ts';
import { MISSING_MAX } from './session.ts';

/** What a process that only compares expects of one peer: another process on the database fetches it. */
export class Awaited {
  readonly #set: Pick<NodeSet, 'has' | 'index'>;
  /** What the last comparison found missing; undefined where there was none, or it was too much to list. */
  #keys: readonly ShortKey[] | undefined;
  /** How many messages there were when it was too much to list. */
  #size: number | undefined;
  #hasCome = false;
  /** What did not come for as long as the peer was waited for: this node refuses it, or the peer never delivers it. */
  #givenUp: ReadonlySet<string> = new Set();

  constructor(set: Pick<NodeSet, 'has' | 'index'>) {
    this.#set = set;
  }

  /** Before a comparison. @returns how much has come of what the one before found missing */
  look(): number {
    const [keys, size] = [this.#keys, this.#size];
    this.#keys = undefined;
    this.#size = undefined;
    const come = keys?.filter((key) => this.#set.has(key)).length;
    this.#hasCome = keys !== undefined && come === keys.length;
    return come ?? (size === undefined ? 0 : Math.max(0, this.#set.index.size - size));
  }

  /** So much is missing that it is not listed. */
  noteMuch(): void {
    this.#size = this.#set.index.size;
  }

  /**
   * What a comparison found. @param missing up to MISSING_MAX. @param isGivenUp whether no more of it is waited for
   * @returns whether nothing is awaited, or what was awaited the last time has come: while messages come in, something is
   * always on its way
   */
  note(missing: readonly ShortKey[], isGivenUp: boolean): boolean {
    const isUnknown = (key: ShortKey) => !this.#givenUp.has(textOfShortKey(key));
    const left = missing.filter(isUnknown);
    if (missing.length >= MISSING_MAX) this.noteMuch();
    else {
      const kept = isGivenUp ? missing : missing.filter((key) => !isUnknown(key));
      this.#givenUp = new Set(kept.map(textOfShortKey));
      // What comes next says whether the peer is in step but for those.
      if (!isGivenUp) this.#keys = left;
    }
    return left.length === 0 || this.#hasCome;
  }
}
