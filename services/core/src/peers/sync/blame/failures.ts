import { asDatabaseError } from '@skerry/database';
import type { Logger } from '@skerry/kit';
import { AppError, type ErrorCode } from '@skerry/protocol';
import type { PeerState } from '../view.ts';

/** What a start takes: until then a peer that nobody reached yet may be starting as well, and is no fault. */
export const START_MS = 60_000;
/** What this node's own database fails with, and a peer of its own may refuse with, too. */
const OF_DATABASE: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['DATABASE_UNAVAILABLE', 'STORAGE_FULL']);

export interface FailuresOptions {
  /** Milliseconds since whenever; never set. */
  readonly uptime: () => number;
  readonly log: Logger;
}

/** Whose fault it is that a session failed, and what of that the log has. */
export class SessionFailures {
  readonly #options: FailuresOptions;
  readonly #openedMs: number;
  readonly #own = new WeakSet<AppError>();
  /** The code of the failure that the log has of each peer that fails. */
  readonly #told = new Map<PeerState, ErrorCode>();

  constructor(options: FailuresOptions) {
    this.#options = options;
    this.#openedMs = options.uptime();
  }

  /** Of what only this node can fail at. */
  noteOwn(error: unknown): void {
    if (error instanceof AppError && OF_DATABASE.has(error.code)) this.#own.add(error);
  }

  /** A session with the peer failed so: it is told of the peer, and in the log where it is news. */
  note(peer: PeerState, error: unknown): void {
    const own = this.#ownOf(error);
    const code = own?.code ?? (error instanceof AppError ? error.code : 'INTERNAL');
    if (own) {
      // The whole node suffers from it, and its log has it already.
      this.#options.log.debug(
        { err: error, peer: peer.link.name },
        'a session ended by a failure of this node',
      );
      peer.patience.pause();
    } else this.#tell(peer, code, error);
    // What was this node is no other one because it does not answer.
    const state = peer.state === 'self' && code === 'UPSTREAM_UNAVAILABLE' ? 'self' : 'failing';
    Object.assign(peer, { state, failures: peer.failures + 1, failure: code });
  }

  #tell(peer: PeerState, code: ErrorCode, error: unknown): void {
    const { uptime, log } = this.#options;
    const { name } = peer.link;
    const isNew = peer.messages === null && uptime() - this.#openedMs < START_MS;
    if (code === 'INTERNAL') log.error({ err: error, peer: name }, 'a session with a peer failed');
    else if (code === 'UPSTREAM_UNAVAILABLE' && isNew)
      log.debug({ err: error, peer: name }, 'a peer does not answer yet');
    else if (this.#told.get(peer) !== code) {
      log.warn({ err: error, peer: name }, 'cannot stay in step with a peer');
      this.#told.set(peer, code);
    }
  }

  /** A session came to its end. */
  clear(peer: PeerState): void {
    this.#told.delete(peer);
  }

  /** What a peer fails with is an AppError always (PeerLink); what the driver of the database says is none. */
  #ownOf(error: unknown): AppError | undefined {
    if (!(error instanceof AppError)) return asDatabaseError(error);
    return this.#own.has(error) ? error : undefined;
  }
}
