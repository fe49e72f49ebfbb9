import type { Logger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { NetworkClock } from '../clock.ts';
import type { PeerGreeting } from '../link.ts';
import type { SessionOptions } from '../session.ts';
import type { PeerState } from '../view.ts';
import { Doubted, type DoubtedOptions } from './doubted.ts';
import { Unread } from './unread.ts';

type AskOptions = Pick<SessionOptions, 'source' | 'declined' | 'signal'> & {
  /** Told what came, of one question after the other. */
  readonly progress: () => NonNullable<SessionOptions['onProgress']>;
};

/** What a node asks its peers for by name at the end of a session, since both have it under the same key. */
export class ByName {
  readonly #unread: Unread;
  readonly #doubted: Doubted;
  readonly #clock: Pick<NetworkClock, 'now'>;
  readonly #log: Logger;

  constructor({ log, ...options }: DoubtedOptions & { readonly log: Logger }) {
    this.#clock = options.clock;
    this.#log = log;
    this.#unread = new Unread(options.db);
    this.#doubted = new Doubted(options);
  }

  /**
   * Messages are compared by then: that this fails, or takes long, fails no session. It is told of the peer (PeerState).
   * @returns how it failed. Throws what is no AppError, and anything once the signal ends
   */
  async ask(peer: PeerState, greeting: PeerGreeting, options: AskOptions): Promise<AppError | undefined> {
    try {
      await this.#askAll(peer, greeting, options);
      peer.forgottenFailure = null;
      return undefined;
    } catch (error) {
      if (!(error instanceof AppError) || options.signal.aborted) throw error;
      if (peer.forgottenFailure !== error.code)
        this.#log.warn({ err: error, peer: peer.link.name }, 'cannot compare what is forgotten with a peer');
      peer.forgottenFailure = error.code;
      return error;
    }
  }

  async #askAll(
    peer: PeerState,
    { forgotten }: PeerGreeting,
    { progress, ...options }: AskOptions,
  ): Promise<void> {
    const { link } = peer;
    await this.#unread.ask(link, { ...options, onProgress: progress() });
    // A peer of an earlier release compares no more than all that it has.
    if (forgotten === undefined) return;
    const { disputed, isWhole } = await this.#doubted.ask(link, { ...options, onProgress: progress() });
    if (isWhole) peer.forgottenMs = this.#clock.now();
    if (disputed > 0)
      this.#log.warn({ peer: link.name, disputed }, 'a peer tells otherwise whose erased messages are');
  }
}
