/** A place in the messages of one kind: newest first. */
export interface Place {
  /** Of the kinds of content that are looked at. */
  readonly kind: number;
  readonly time: number;
  readonly itemHash: string;
}
