/** A page of a list, as SQL wants it. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
}

/** A page of a list that is in order of time; equal times by hash. */
export interface TimedPage extends Page {
  /** The last row of the page before. */
  readonly after?: { readonly time: number; readonly itemHash: string } | undefined;
  readonly oldestFirst?: boolean | undefined;
}
