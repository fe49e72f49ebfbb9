import type { Readable } from 'node:stream';
import type { Hold } from '@skerry/database';

export type PartHold = Pick<Hold, 'use' | typeof Symbol.dispose>;

/** A file that was begun. */
export interface Begun {
  /** Says all that is known of it beforehand (`nameOf`). */
  readonly name: string;
  /** When something came last, or it was begun, in milliseconds since 1970. */
  readonly writtenMs: number;
  /** How many bytes there are from the first one on. */
  readonly receivedBytes: number;
}

/**
 * Port: where what has come of files is until they are whole. Adapters: a directory, which the processes of one machine share
 * (`directory-place.ts`), and an object store, which those of all machines do (`shared-place.ts`); the suite of `parts.test.ts` holds for each.
 */
export interface PartsPlace {
  /** Room on the node's disk, where they come there: for what is still to come of a file, and for all of it where it is put together. Throws STORAGE_FULL. */
  hold?(restBytes: number, sizeBytes: number): PartHold;
  /** Bytes that this disk lacks until a large file may go on; 0 where it lacks none. */
  lackBytes?(): number;
  list(): Promise<readonly Begun[]>;
  /** How many bytes there are from the first one on; 0 where it was not begun. */
  received(name: string): Promise<number>;
  /**
   * Adds what follows the first `before` bytes. What came before the source failed is kept.
   * Throws STORAGE_FULL, STORAGE_UNAVAILABLE, and what the source failed with.
   * @returns how many bytes there are now
   */
  write(name: string, before: number, source: AsyncIterable<Buffer>): Promise<number>;
  /** All that has come. */
  read(name: string): Readable;
  /** Harmless where there is none. */
  remove(name: string): Promise<void>;
}
