/** Least, middle and most of what was measured in several rounds; all the same where there was one round. */
export interface Spread {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
}

/** What a figure should be: at least or at most so much. `of` says which of its numbers is meant. */
export interface Goal {
  readonly of: 'median' | 'p95' | 'p99' | 'ratio';
  readonly least?: number;
  readonly most?: number;
}

/** One figure of a bench. */
export interface Figure extends Spread {
  /** What it stands under. With `what` it names the figure within its bench. */
  readonly group: string;
  readonly what: string;
  readonly unit: string;
  /** How many times it was measured: rounds, or requests where there are quantiles. */
  readonly rounds: number;
  readonly p95?: number;
  readonly p99?: number;
  /** To a peer or a limit that was measured in the same rounds, taken within each round. */
  readonly ratio?: Spread & { readonly to: string };
  readonly goal?: Goal;
}
