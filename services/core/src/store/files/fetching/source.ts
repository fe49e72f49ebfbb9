import type { Readable } from 'node:stream';
import { ASKED_FILES_MAX } from '@skerry/protocol';

/** What a source gives of a file. */
export interface Opened {
  /** The bytes are checked by whoever takes them. */
  readonly stream: Readable;
  readonly contentType: string;
  /** As the source says; undefined where it does not. */
  readonly sizeBytes?: number | undefined;
}

/** What a source says to have. */
export interface Held {
  readonly held: readonly string[];
}

/** It does not say whether it has the file, and wants to be left alone for so long. */
interface Resting {
  readonly restMs: number;
}

/** Names in one question about many files. */
export const ASKED_NAMES_MAX = ASKED_FILES_MAX;

/** Port: a place where files can be had by name. Adapters: other core nodes (peers/sync/file-source.ts), the node's own store (own-files.ts). */
export interface FileSource {
  readonly name: string;
  /** Whether it has files of such names: SHA-256 in hexadecimal, or CIDs. */
  handles(name: string): boolean;
  /** undefined: it does not have the file. */
  open(name: string, signal: AbortSignal): Promise<Opened | Resting | undefined>;
  /** Which of these it has, at most ASKED_NAMES_MAX; undefined: it can be asked for one at a time alone. */
  findHeld?(names: readonly string[], signal: AbortSignal): Promise<Held | Resting>;
  /** Told when the bytes were not those of the name. */
  onWrongBytes?(): void;
}
