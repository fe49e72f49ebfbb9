import { PROGRAM_LIMITS } from '../limits.ts';

export interface LogEntry {
  /** Milliseconds since 1970. */
  readonly time_ms: number;
  /** `system` is what the node itself says of the program. */
  readonly type: 'stdout' | 'stderr' | 'system';
  readonly message: string;
}

/** The end of what a program wrote, over all of its sandboxes. */
export class LogTail {
  readonly #entries: LogEntry[] = [];
  #chars = 0;

  add(type: LogEntry['type'], message: string, nowMs: number): void {
    const kept = message.slice(-PROGRAM_LIMITS.logTailBytes);
    this.#entries.push({ time_ms: nowMs, type, message: kept });
    this.#chars += kept.length;
    while (this.#chars > PROGRAM_LIMITS.logTailBytes) this.#chars -= this.#entries.shift()!.message.length;
  }

  list(): readonly LogEntry[] {
    return this.#entries;
  }
}
