/** What a look at the chain came to. */
export interface Look {
  /** It is another chain or another contract than it was, or blocks of it are read that were settled. */
  readonly isAnew: boolean;
  /** There is more to read at once. */
  readonly isCut: boolean;
  /** Up to this block the contract is read. */
  readonly readTo: number;
  /** The newest block that an endpoint has shown. */
  readonly head: number | null;
  /** RPC calls as counted with the head: where there are more than before, it was looked at meanwhile. */
  readonly requests: number;
}

/**
 * Whether a contract is read as far as the head that was seen first since this process began, or as was noted when it was
 * begun anew: an archive that is not found before may be on it all the same, and would be paid again. A head that was noted before the
 * start says nothing of what was sent since. What the chain has above is not waited for (docs/anchoring.md).
 */
export class CatchUp {
  #goal: number | undefined;
  /** At the first look. */
  #requests: number | undefined;
  #isDone = false;

  get isDone(): boolean {
    return this.#isDone;
  }

  note({ isAnew, isCut, readTo, head, requests }: Look): void {
    if (isAnew) {
      this.#goal = undefined;
      this.#isDone = false;
    }
    this.#requests ??= requests;
    if (requests === this.#requests) return;
    // One that an endpoint made up is not waited for once it is found out.
    if (head !== null) this.#goal = Math.min(head, this.#goal ?? head);
    if (!isCut && this.#goal !== undefined && readTo >= this.#goal) this.#isDone = true;
  }
}
