import { signal } from '@preact/signals';
import type { MarkKind } from './mark-kinds.ts';
import type { Subject } from './subjects.ts';

/** A mark whose meaning the reader wants to see. */
export interface Explained {
  readonly kind: MarkKind;
  /** What it stands beside. */
  readonly of: Subject;
  /** The message whose bytes it follows from. */
  readonly message?: string | undefined;
  /** Where the answer that says so is, byte by byte. */
  readonly source?: string | undefined;
  /** What was found of this one, in a sentence. */
  readonly why?: string | undefined;
}

export const explained = signal<Explained | undefined>(undefined);
