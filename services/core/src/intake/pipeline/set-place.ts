/**
 * Changes of the set of messages: a row for each batch, in the batch's transaction, with what it did. Every process on the
 * database follows them. Each row repeats the mark of the one before it, so a reader whose last row is not there any more
 * knows that the database has another history than the one it followed.
 */

/** A row's place in the history. */
export interface SetPlace {
  /** 0 before the first row. */
  readonly seq: number;
  readonly mark: string | null;
  readonly lastEvent: number;
}

export interface SetChange extends SetPlace {
  /** The mark of the row before it; null for the first. */
  readonly after: string | null;
}

export const BEGINNING: SetPlace = { seq: 0, mark: null, lastEvent: 0 };

/** Whether the row is the next one of the history that the reader stands in. Pure. */
export const follows = (place: SetPlace, row: Pick<SetChange, 'seq' | 'after'>): boolean =>
  row.seq === place.seq + 1 && row.after === place.mark;
