import type { Logger } from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { Schema } from '../../../store/schema.ts';
import type { PeerGreeting, PeerLink } from '../link.ts';
import type { NodeSet } from '../node-set.ts';
import type { SessionOptions } from '../session.ts';
import { Doubted } from './doubted.ts';
import { Unread } from './unread.ts';

type AskOptions = Pick<SessionOptions, 'source' | 'declined' | 'signal'> & {
  /** Told what came, of one question after the other. */
  readonly progress: () => NonNullable<SessionOptions['onProgress']>;
};

/** What a node asks its peers for by name at the end of a session, since both have it under the same key. */
export class ByName {
  readonly #unread: Unread;
  readonly #doubted: Doubted;
  readonly #log: Logger;

  constructor(db: Kysely<Schema>, set: NodeSet, now: () => number, log: Logger) {
    this.#log = log;
    this.#unread = new Unread(db);
    this.#doubted = new Doubted(db, set, now);
  }

  /** Throws what the link, `read` and `keep` throw, PEER_MISBEHAVED and ForgedError. */
  async ask(
    link: PeerLink,
    { forgotten }: PeerGreeting,
    { progress, ...options }: AskOptions,
  ): Promise<void> {
    await this.#unread.ask(link, { ...options, onProgress: progress() });
    // A peer of an earlier release compares no more than all that it has.
    if (forgotten === undefined) return;
    const disputed = await this.#doubted.ask(link, { ...options, onProgress: progress() });
    if (disputed > 0)
      this.#log.warn({ peer: link.name, disputed }, 'a peer tells otherwise whose erased messages are');
  }
}
