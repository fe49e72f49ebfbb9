/** A page of a list, as SQL wants it. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
}
