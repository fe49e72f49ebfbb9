/** Bounds of what a chain can make a node do. Units last. */
export const ARCHIVE_LIMITS = {
  /** An archive that is read. */
  readBytes: 64 * 1024 * 1024,
  /** An archive that is made; what does not fit comes with the next one. */
  madeBytes: 16 * 1024 * 1024,
  /** Messages of one archive that are read. */
  messages: 20_000,
  /** Messages that are verified and submitted together. */
  together: 256,
  /** The same in bytes with contents that are files, of which memory holds up to twenty times as much; a larger one goes alone. */
  togetherBytes: 8 * 1024 * 1024,
  /** Archives that are fetched at the same time. */
  parallel: 2,
  /** One try to fetch an archive. */
  tryMs: 60_000,
  /** Events that one step takes from the indexer. */
  events: 500,
  /** Nesting of JSON within an archive. */
  depth: 64,
} as const;
