/** PostgreSQL, "Deadlocks": what its log begins with, and ends what it says of the two with. */
const BEGINS = 'deadlock detected';
const ENDS = 'See server log for query details.';
/** Lines of one: who waits for whom, and their statements. */
const LINES_MAX = 40;

/**
 * Transactions that waited for each other until the database ended one of them, from its log. Whoever is told "try again" does, so
 * that tests pass all the same; it is a fault of the order in which rows are locked.
 */
export class Deadlocks {
  /** What the log says of each. */
  readonly found: string[] = [];
  #linesLeft = 0;

  /** @param message a line of the log, without its severity */
  note(message: string): void {
    if (message === BEGINS) {
      this.found.push(message);
      this.#linesLeft = LINES_MAX;
      return;
    }
    if (this.#linesLeft === 0) return;
    this.#linesLeft = message === ENDS ? 0 : this.#linesLeft - 1;
    if (message !== ENDS) this.found.push(`${this.found.pop()}\n${message}`);
  }
}
