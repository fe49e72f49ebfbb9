import type { Route, RouteChange } from '../port.ts';
import type { AdminSocket } from './admin.ts';
import { findComplaint, isGone, type RouteBook, takeAway } from './route-book.ts';

/** HAProxy takes a command line of 16 KiB; but it looks for a name from the first on, and nothing passes meanwhile. */
const MAX_LINE_CHARS = 2_000;

/**
 * Tells a running HAProxy the changes of routes, in order. Changes of one name that nobody has told yet are one: what waits
 * is never more than the names.
 */
export class RouteFeed {
  readonly #admin: AdminSocket;
  readonly #book: RouteBook;
  readonly #waiting = new Map<string, RouteChange>();
  #leaving: string[] = [];
  #isOpen = false;
  #telling: Promise<void> | undefined;
  readonly #onTrouble: (error: Error) => void;

  /** @param onTrouble HAProxy did not do as it was told: its routes are not known any more */
  constructor(admin: AdminSocket, book: RouteBook, onTrouble: (error: Error) => void) {
    this.#admin = admin;
    this.#book = book;
    this.#onTrouble = onTrouble;
  }

  /** HAProxy listens to orders. */
  open(): void {
    this.#isOpen = true;
    this.#begin();
  }

  apply(changes: Iterable<RouteChange>): void {
    for (const change of changes) {
      this.#waiting.delete(change.hostname);
      this.#waiting.set(change.hostname, change);
    }
    this.#begin();
  }

  /** Makes these the only routes; those that are as they were are not touched. */
  replace(routes: Iterable<Route>): void {
    this.#waiting.clear();
    const gone = new Set(this.#book.names());
    const changes: RouteChange[] = [];
    for (const route of routes) {
      gone.delete(route.hostname);
      if (!this.#book.has(route)) changes.push(route);
    }
    this.apply([...[...gone].map((hostname) => ({ hostname, ipv6: null })), ...changes]);
  }

  /** Resolves when HAProxy has been told of all changes so far. */
  async settled(): Promise<void> {
    await this.#telling;
  }

  #begin(): void {
    if (!this.#isOpen || this.#waiting.size === 0 || this.#telling) return;
    this.#telling = this.#tell()
      .catch((error: Error) => {
        this.#isOpen = false;
        this.#onTrouble(error);
      })
      .finally(() => {
        this.#telling = undefined;
        this.#begin();
      });
  }

  async #tell(): Promise<void> {
    while (this.#waiting.size > 0) {
      const answer = await this.#admin.ask(this.#nextLine());
      const complaint = findComplaint(answer);
      if (complaint !== undefined) throw new Error(`HAProxy did not take the routes: ${complaint}`);
    }
    await this.#takeAway();
  }

  #nextLine(): string {
    const commands: string[] = [];
    let chars = 0;
    for (const change of this.#waiting.values()) {
      this.#waiting.delete(change.hostname);
      const orders = this.#book.change(change);
      this.#leaving.push(...orders.leaving);
      commands.push(...orders.commands);
      for (const command of orders.commands) chars += command.length + 1;
      if (chars > MAX_LINE_CHARS) break;
    }
    return commands.join(';');
  }

  /** Servers without routes; those that still have connections stay until the next change. */
  async #takeAway(): Promise<void> {
    const staying: string[] = [];
    for (const server of this.#leaving)
      if (!isGone(await this.#admin.ask(takeAway(server)))) staying.push(server);
    this.#leaving = staying;
  }
}
