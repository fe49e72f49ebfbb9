import { plainText, renderDuration } from './text.ts';

interface ProgressStream {
  write(text: string): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface Progress extends Disposable {
  /** Says what is going on now. */
  show(text: string): void;
}

/** What is over within this is not worth a word. */
const QUIET_MS = 1_000;
const REFRESH_MS = 1_000;
const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\u001b[K';

/**
 * Tells how something that takes longer goes on: one line that is updated, with the time it has taken, on a terminal;
 * a line for each change elsewhere.
 * @param quietMs silence before the first word
 */
export function startProgress(stream: ProgressStream, quietMs: number = QUIET_MS): Progress {
  const startedMs = Date.now();
  const { isTTY: isTerminal = false } = stream;
  let text: string | undefined;
  let told: string | undefined;
  let drawn = false;
  let over = false;

  const tell = () => {
    if (over || text === undefined || Date.now() - startedMs < quietMs) return;
    if (isTerminal) {
      const line = `${text} (${renderDuration(Date.now() - startedMs)})`;
      stream.write(`${CLEAR_LINE}${line.slice(0, (stream.columns ?? DEFAULT_COLUMNS) - 1)}`);
      drawn = true;
    } else if (text !== told) {
      stream.write(`${text}\n`);
    }
    told = text;
  };
  const timer = setInterval(tell, REFRESH_MS);
  timer.unref();
  return {
    show(next) {
      text = plainText(next);
      tell();
    },
    [Symbol.dispose]() {
      over = true;
      clearInterval(timer);
      if (drawn) stream.write(CLEAR_LINE);
    },
  };
}
