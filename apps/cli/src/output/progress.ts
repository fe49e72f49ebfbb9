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
/** Elsewhere than on a terminal: how often a figure that counts up is worth a line. */
const FIGURES_MS = 5_000;
const FIGURE = /\d+(\.\d+)?( ?[KMGT]iB)?/g;
const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\u001b[K';

const differsInFigures = (one: string, other = '') =>
  one.replaceAll(FIGURE, '') === other.replaceAll(FIGURE, '');

/**
 * Tells how something that takes longer goes on: one line that is updated, with the time it has taken, on a terminal;
 * a line for each change elsewhere, where figures alone change now and then.
 * @param quietMs silence before the first word
 */
export function startProgress(stream: ProgressStream, quietMs: number = QUIET_MS): Progress {
  const startedMs = Date.now();
  const { isTTY: isTerminal = false } = stream;
  let text: string | undefined;
  let told: string | undefined;
  let toldMs = 0;
  let drawn = false;
  let over = false;

  const tell = () => {
    if (over || text === undefined || Date.now() - startedMs < quietMs) return;
    if (isTerminal) {
      const line = `${text} (${renderDuration(Date.now() - startedMs)})`;
      stream.write(`${CLEAR_LINE}${line.slice(0, (stream.columns ?? DEFAULT_COLUMNS) - 1)}`);
      drawn = true;
    } else if (text !== told && (!differsInFigures(text, told) || Date.now() - toldMs >= FIGURES_MS)) {
      stream.write(`${text}\n`);
      told = text;
      toldMs = Date.now();
    }
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
