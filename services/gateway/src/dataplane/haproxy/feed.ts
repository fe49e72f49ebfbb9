import type { Route, RouteChange } from '../port.ts';
import type { AdminSocket } from './admin.ts';
import { findComplaint, findVersion, isGone, type RouteBook, takeAway } from './route-book.ts';

/** HAProxy takes a command line of 16 KiB; but it looks for a name from the first on, and nothing passes meanwhile. */
const MAX_LINE_CHARS = 2_000;
/** From so many names that are to be looked for, a new map of all names takes it less time, however many there are. */
const MANY_NAMES = 50;

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
      const changes = [...this.#waiting.values()];
      this.#waiting.clear();
      const slow = changes.filter((change) => this.#book.isSlow(change));
      if (slow.length >= MANY_NAMES) await this.#tellWhole(changes);
      else await this.#tellEach(changes);
    }
    await this.#takeAway();
  }

  /** One line at the admin socket. */
  async #order(commands: readonly string[]): Promise<void> {
    const complaint = findComplaint(await this.#admin.askFirst(commands.join(';')));
    if (complaint !== undefined) throw new Error(`HAProxy did not take the routes: ${complaint}`);
  }

  /** As many lines as it takes. */
  async #orderAll(commands: readonly string[]): Promise<void> {
    let line: string[] = [];
    let chars = 0;
    for (const command of commands) {
      line.push(command);
      chars += command.length + 1;
      if (chars <= MAX_LINE_CHARS) continue;
      await this.#order(line);
      [line, chars] = [[], 0];
    }
    if (line.length > 0) await this.#order(line);
  }

  /** Makes these changes by a new map of all names. */
  async #tellWhole(changes: readonly RouteChange[]): Promise<void> {
    const orders = changes.map((change) => this.#book.change(change));
    this.#leaving.push(...orders.flatMap(({ leaving }) => leaving));
    await this.#orderAll(orders.flatMap(({ before }) => before));
    const answer = await this.#admin.askFirst(this.#book.prepareMap);
    const version = findVersion(answer);
    if (version === undefined) throw new Error(`HAProxy made no new map: ${answer.trim()}`);
    for (const command of this.#book.replaceMap(version)) await this.#order([command]);
    await this.#orderAll(orders.flatMap(({ behind }) => behind));
  }

  async #tellEach(changes: readonly RouteChange[]): Promise<void> {
    const orders = changes.map((change) => this.#book.change(change));
    this.#leaving.push(...orders.flatMap(({ leaving }) => leaving));
    await this.#orderAll(orders.flatMap(({ before, map, behind }) => [...before, ...map, ...behind]));
  }

  /** Servers without routes; those that still have connections stay until the next change. */
  async #takeAway(): Promise<void> {
    const staying: string[] = [];
    for (const server of this.#leaving)
      if (!isGone(await this.#admin.askFirst(takeAway(server)))) staying.push(server);
    this.#leaving = staying;
  }
}
