import { LIMITS } from '@skerry/protocol';

/** Limits of programs and of the sandboxes that they run in. Units last. */
export const PROGRAM_LIMITS = {
  /** An answer's body. */
  outputBytes: 8 * 1024 * 1024,
  /** Head of a frame, either way: path, query, header fields. */
  frameHeadBytes: 128 * 1024,
  /** Pieces that a frame comes in: a runtime's have kilobytes. Each costs the node time and memory, however small it is. */
  framePieces: 16 * 1024,
  /** Code, packed or not. */
  codeBytes: LIMITS.programFileBytes,
  /** Code that is fetched at once, each in memory until it is there: of all programs, and of those of one owner. */
  codeFetched: {
    running: { total: 4, reserve: 0, perClient: 2 },
    waiting: { total: 256, reserve: 0, perClient: 64 },
    waitMs: 30_000,
    what: 'programs whose code is fetched',
    retryAfter: 10,
  },
  /** What one call may write to standard output and error. One that writes more is ended. */
  logBytesPerCall: 4 * 1024 * 1024,
  /** What a kept program may write there in a second, where each piece that is read counts as so much at least. What is more waits. */
  keptLogBytesPerSecond: 1024 * 1024,
  logPieceBytes: 1024,
  /** The end of what a program wrote is kept, for its owner to read: so many characters, in so many lines of this length. */
  logTailChars: 64 * 1024,
  logTailLines: 1_000,
  logLineChars: 16 * 1024,
  /** Of lines that come in one piece, the last ones that who follows the log is told. */
  logLinesTold: 4_096,
  /** Who follows the log of one program. */
  logReaders: 16,
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
  /** Of the memory of all programs, what those may have together that are kept running. */
  keptShare: 0.75,
  /** A kept program that ended is started again after this, twice as long each time up to the most. */
  keptRestartMs: 1_000,
  keptRestartMaxMs: 300_000,
  /** One that ran for as long begins with the short pause again. */
  keptSteadyMs: 60_000,
  /** Messages that wait to be handed to one program, and to all; newer ones are left out. */
  messagesPerProgram: 256,
  messages: 4_096,
  /** Calls of one program by messages: what messages bring about among programs cannot grow beyond it. */
  messageCallsPerMinute: 60,
  /** Programs that are called by messages at the same time. */
  messageCalls: 4,
  /** A message that a program failed at is tried again after this, twice as long each time, and so many times in all. */
  messageRetryMs: 2_000,
  messageTries: 5,
  /** One that it could not be called with, for what passes, is tried again after this, twice as long each time up to the most. */
  messageAwayMs: 10_000,
  messageAwayMaxMs: 300_000,
  /** Filters of one program. */
  messageFilters: 32,
  /** Volumes of one program, and directories of the path that one is mounted at. */
  volumes: 16,
  mountDepth: 16,
  /** A file that is a volume, packed; and what it may be unpacked. */
  volumeFileBytes: 1024 * 1024 * 1024,
  unpackedMib: 2_048,
  /** Files that are fetched and unpacked at once. Of one owner, one: who has large ones waits for itself. */
  filesMade: {
    running: { total: 2, reserve: 0, perClient: 1 },
    waiting: { total: 256, reserve: 0, perClient: 16 },
    waitMs: 600_000,
    what: 'files of volumes that are made ready',
    retryAfter: 30,
  },
  /** Of the disk that volumes have, what those of one owner may have, with the files that they use. */
  volumesShare: 0.5,
  /** How often volumes of forgotten programs are looked for. */
  volumeSweepMs: 600_000,
  /** How often the core node is asked what this node is to run by itself. */
  assignedEveryMs: 5_000,
  /** Beyond this a warm sandbox is replaced, whatever its program leaks: not that of a kept one. */
  callsPerSandbox: 100_000,
} as const;
