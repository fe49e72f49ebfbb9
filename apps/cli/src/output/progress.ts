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
/** Elsewhere than on a terminal: how often something that goes on without a change is said to. */
const STILL_MS = 30_000;
const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\u001b[K';

const differsInFigures = (one: string, other = '') =>
  one.replaceAll(FIGURE, '') === other.replaceAll(FIGURE, '');

/**
 * Tells how something that takes longer goes on: one line that is updated, with the time it has taken, on a terminal;
 * a line for each change elsewhere, where figures alone change now and then, and for each half minute without one.
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
      stream.write(`${CLEAR_LINE}${line.slice(0, (stream.columns || DEFAULT_COLUMNS) - 1)}`);
      drawn = true;
      return;
    }
    const silentMs = Date.now() - toldMs;
    const isNews = text !== told && (!differsInFigures(text, told) || silentMs >= FIGURES_MS);
    if (!isNews && silentMs < STILL_MS) return;
    stream.write(isNews ? `${text}\n` : `${text} (${renderDuration(Date.now() - startedMs)})\n`);
    told = text;
    toldMs = Date.now();
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
