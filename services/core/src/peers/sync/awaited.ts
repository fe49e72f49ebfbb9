import { type ShortKey, shortHashOf, textOfShortKey } from '@skerry/protocol';
import { type Accepted, isRead } from '../../intake/accepted.ts';
import { shortKeyOfAccepted } from '../../intake/pipeline/statement.ts';
import type { PeerLink } from './link.ts';
import type { NodeSet } from './node-set.ts';
import { fetchListed, MISSING_MAX, type SessionOptions } from './session.ts';

/** Messages that are asked for in one session to see whether they can be had, and requests for them: a body has room for so much. */
const ASKED_MAX = 100;
const REQUESTS_MAX = 8;

export interface AskOptions extends Pick<SessionOptions, 'set' | 'source' | 'signal'> {
  /** Told how many messages came that nobody signed. */
  readonly onForged: (count: number) => void;
}

/** Whether a message is here that a peer lists by another key, since one of the two wants its text, and what came tells no more of it. */
function isHere(accepted: Accepted, set: Pick<NodeSet, 'has'>): boolean {
  const tellsAll = !accepted.isSkeleton && isRead(accepted.message);
  return (
    set.has(shortKeyOfAccepted(accepted)) || (!tellsAll && set.has(shortKeyOfAccepted(accepted, 'wanted')))
  );
}

/**
 * Asks for messages that a peer lists and keeps none of them: the process that leads does, if they can be had.
 * @param keys in order; the first are asked for
 * @returns what is listed in vain: this node takes none of it. Throws what `fetchListed` and `read` throw
 */
export async function findVain(
  link: PeerLink,
  keys: readonly ShortKey[],
  { set, source, signal, onForged }: AskOptions,
): Promise<readonly ShortKey[]> {
  let left = keys.slice(0, ASKED_MAX);
  for (let request = 0; request < REQUESTS_MAX && left.length > 0; request++) {
    const frames = await fetchListed(link, left, signal);
    const read = await source.read(frames);
    const countOf = (fault: string) => read.filter((one) => 'fault' in one && one.fault === fault).length;
    onForged(countOf('forged'));
    // Its time comes.
    if (countOf('later') > 0) return [];
    const good = new Set(
      read.flatMap((one) =>
        'accepted' in one && !isHere(one.accepted, set)
          ? [shortHashOf(shortKeyOfAccepted(one.accepted).id)]
          : [],
      ),
    );
    const rest = left.filter(({ id }) => !good.has(shortHashOf(id)));
    if (frames.length >= left.length) return rest;
    // What did not fit is behind what came.
    left = rest.length < left.length ? rest : left.slice(0, frames.length);
  }
  return [];
}

/** What a process that only compares expects of one peer: another process on the database fetches it. */
export class Awaited {
  readonly #set: Pick<NodeSet, 'has'>;
  /** What the last comparison found missing, but for what is listed in vain; undefined where there was none. */
  #keys: readonly ShortKey[] | undefined;
  #hasCome = false;
  /** What the peer lists in vain. That others came meanwhile proves nothing: clients and gossip bring them, too. */
  #vain: ReadonlySet<string> = new Set();

  constructor(set: Pick<NodeSet, 'has'>) {
    this.#set = set;
  }

  /** Before a comparison. @returns how much has come of what the one before found missing at this peer */
  look(): number {
    const keys = this.#keys ?? [];
    const come = keys.filter((key) => this.#set.has(key)).length;
    this.#hasCome = this.#keys !== undefined && come === keys.length;
    this.#keys = undefined;
    return come;
  }

  /**
   * What a comparison found. @param missing up to MISSING_MAX, in order: there may be more where it is as many.
   * @param find finds what is listed in vain, among what is left; undefined while the peer is waited for
   * @returns whether nothing is awaited, or what was awaited the last time has come: while messages come in, something is
   * always on its way. Throws what `find` throws
   */
  async note(
    missing: readonly ShortKey[],
    find: ((keys: readonly ShortKey[]) => Promise<readonly ShortKey[]>) | undefined,
  ): Promise<boolean> {
    const isVain = (key: ShortKey) => this.#vain.has(textOfShortKey(key));
    const listLeft = () => missing.filter((key) => !isVain(key));
    const isWhole = missing.length < MISSING_MAX;
    if (isWhole) {
      const left = listLeft();
      const found = find && left.length > 0 ? await find(left) : [];
      this.#vain = new Set([...missing.filter(isVain), ...found].map(textOfShortKey));
    }
    this.#keys = listLeft();
    return isWhole && (this.#keys.length === 0 || this.#hasCome);
  }
}
