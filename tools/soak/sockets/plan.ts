/** What the readers of the soak are asked to do, and what they tell. */

export interface Plan {
  readonly port: number;
  /** Each has messages with the numbers 0, 1, 2 and so on, in their order. */
  readonly channels: number;
  /** Who follow one channel each. */
  readonly readers: number;
  /** Who follow everything, and read it. */
  readonly greedy: number;
  /** Who follow everything, and read nothing. */
  readonly slow: number;
}

export interface Counts {
  /** Shook hands. */
  readonly open: number;
  readonly frames: number;
  /** A number that a reader should have had before another one. */
  readonly gaps: number;
  /** A number that a reader had already. */
  readonly duplicates: number;
  /** Ended by the node before the end. */
  readonly ended: number;
}

/** What the readers say at the end. */
export interface Result extends Counts {
  /** Readers that lack the last messages of what they follow. */
  readonly behind: number;
}

export type FromReaders =
  | ({ readonly kind: 'counts' } & Counts)
  | { readonly kind: 'ready' }
  | ({ readonly kind: 'result' } & Result);

/** The last number of each channel: who was there all the time has it. */
export interface End {
  readonly last: readonly number[];
}

/** How a message says where it belongs; nothing before it in a frame holds such a sign. */
export const markOf = (channel: number, number: number) => `<${channel}:${number}>`;
export const channelName = (channel: number) => `soak-${channel}`;
