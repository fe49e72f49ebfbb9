import { setImmediate as turn } from 'node:timers/promises';
import { Failures, type Logger, pause } from '@skerry/kit';
import type { Kysely } from 'kysely';
import type { MessageFilter } from '../../state/lists/properties.ts';
import type { Schema } from '../../store/schema.ts';
import type { EventLog } from '../events/log.ts';
import type { Connections } from './connections.ts';
import { type Due, readDue } from './due.ts';
import { type Form, frameOf } from './form.ts';
import { type Group, Groups } from './groups.ts';
import { type Numbered, Piece, Reader } from './reader.ts';

/** Between two looks at the log, so that a busy node sends many messages at once. */
const REST_MS = 20;
/** Readers that are given something in one turn of the event loop. */
const READERS_A_TURN = 256;
const FAILED_REST_MAX_MS = 10_000;

type ReaderGroup = Group<Reader>;

interface MessageFeedOptions {
  readonly db: Kysely<Schema>;
  readonly events: EventLog;
  readonly connections: Connections;
  readonly log: Logger;
  /** Ends when the node stops. */
  readonly signal: AbortSignal;
}

/**
 * Messages as they come into force, for many readers: the log is read once, each message is compared with the few filters
 * that it may fit, and written as text once.
 */
export class MessageFeed {
  readonly #options: MessageFeedOptions;
  readonly #groups = new Groups<Reader>();
  readonly #failures: Failures;
  #following: Promise<void> | undefined;
  /** The last event whose messages went out. */
  #cursor = 0;
  readonly counts = { messages: 0, letGo: 0, restarts: 0 };

  constructor(options: MessageFeedOptions) {
    this.#options = options;
    const what = 'following messages for WebSockets failed; retrying';
    this.#failures = new Failures({ log: options.log, what, maxMs: FAILED_REST_MAX_MS });
  }

  /**
   * From now on the reader gets what fits. A history that is read after this has no gap to it: an event that was before
   * the reader was there is in the history.
   */
  async join(filter: MessageFilter, form: Form): Promise<Reader> {
    this.#following ??= this.#begin();
    await this.#following;
    const reader: Reader = new Reader((isLetGo) => {
      if (isLetGo) this.counts.letGo++;
      this.#groups.remove(group, reader);
    });
    const group = this.#groups.add(filter, form, reader);
    return reader;
  }

  /** Begins with what comes now. */
  async #begin(): Promise<void> {
    try {
      this.#cursor = Number(await this.#options.events.lastCursor());
    } catch (error) {
      this.#following = undefined;
      throw error;
    }
    void this.#follow();
  }

  async #follow(): Promise<void> {
    const { events, signal } = this.#options;
    while (!signal.aborted) {
      const { wakes } = events;
      try {
        if (await this.#sendNext()) await pause(REST_MS, signal);
        else await events.waitForMore(wakes, signal);
        this.#failures.clear();
      } catch (error) {
        if (signal.aborted) return;
        this.counts.restarts++;
        await pause(this.#failures.note(error), signal);
      }
    }
  }

  /** @returns whether there was something */
  async #sendNext(): Promise<boolean> {
    const { db, events } = this.#options;
    if (this.#groups.size === 0) {
      const end = Number(await events.lastCursor());
      // Who came meanwhile may have read a history that ends before.
      if (this.#groups.size === 0) this.#cursor = end;
      return false;
    }
    const { made } = this.#groups;
    const due = await readDue(db, this.#cursor, made);
    if (!due) return false;
    // Somebody came meanwhile whose filter needs more of each row.
    if (this.#groups.made.some((name) => !made.includes(name))) return true;
    const wanted = this.#sort(due);
    // Nothing fails from here on: what is sent is not sent again.
    this.#cursor = due.seq;
    this.counts.messages += due.messages.length;
    await this.#give(wanted);
    return true;
  }

  /** What each group gets. */
  #sort({ messages, confirmations }: Due): Map<ReaderGroup, Numbered[]> {
    const wanted = new Map<ReaderGroup, Numbered[]>();
    for (const { seq, row } of messages) {
      const frames = new Map<Form, Buffer>();
      for (const group of this.#groups.fitting(row)) {
        const { form } = group;
        const frame = frames.get(form) ?? frameOf(row, confirmations, form);
        frames.set(form, frame);
        const list = wanted.get(group);
        if (list) list.push({ seq, frame });
        else wanted.set(group, [{ seq, frame }]);
      }
    }
    return wanted;
  }

  async #give(wanted: ReadonlyMap<ReaderGroup, readonly Numbered[]>): Promise<void> {
    const { connections } = this.#options;
    const pieces = new Map<string, Piece>();
    let given = 0;
    for (const [{ form, members }, list] of wanted) {
      const key = `${form} ${list.map(({ seq }) => seq).join()}`;
      const piece = pieces.get(key) ?? new Piece(list);
      pieces.set(key, piece);
      for (const reader of members) {
        reader.give(piece);
        if (reader.unread > 0) connections.noteBehind(reader);
        if (++given % READERS_A_TURN === 0) await turn();
      }
    }
    connections.relieve();
  }
}
