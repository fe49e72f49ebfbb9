/** Limits of programs and of the sandboxes that they run in. Units last. */
export const PROGRAM_LIMITS = {
  /** An answer's body. */
  outputBytes: 8 * 1024 * 1024,
  /** Head of a frame, either way: path, query, header fields. */
  frameHeadBytes: 128 * 1024,
  /** Code, packed or not. */
  codeBytes: 64 * 1024 * 1024,
  /** What one call may write to standard output and error. One that writes more is ended. */
  logBytesPerCall: 4 * 1024 * 1024,
  /** The end of what a program wrote is kept, for its owner to read. */
  logTailBytes: 64 * 1024,
  /** Processes and threads of one sandbox. */
  tasks: 64,
  openFiles: 256,
  /** One file, and all files: they are in memory, which counts as the program's. */
  fileBytes: 64 * 1024 * 1024,
  sharedMemoryBytes: 16 * 1024 * 1024,
  /** From the start of a sandbox until its runtime says that it is there. */
  startMs: 20_000,
  /** Sandboxes of one program at the same time. */
  sandboxesPerProgram: 4,
  /** Calls that wait for a sandbox, of one program and of all. */
  waitingPerProgram: 64,
  waiting: 512,
  /** How long a call waits for a sandbox. */
  waitMs: 30_000,
  /** While others wait, a call that takes more than its caller's share of the node ends after this. */
  contendedMs: 10_000,
  /** Beyond this a warm sandbox is replaced, whatever its program leaks. */
  callsPerSandbox: 100_000,
} as const;
