import { once } from 'node:events';
import { styleText } from 'node:util';
import { type Progress, startProgress } from './progress.ts';
import { consoleText, jsonText, renderTable, type STYLES, terminalText } from './text.ts';

type Style = (typeof STYLES)[number];

/** What a text is: the command's own, or what a machine or a program wrote, whose colours are a part of it. */
const SHOW = { own: terminalText, console: consoleText };
type Kind = keyof typeof SHOW;

export interface OutputStream {
  write(text: string): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

interface Page {
  readonly page: number;
  readonly total_pages: number;
  readonly total: number;
}

/** Results go to standard output, everything about the way there to standard error. */
export interface Output {
  readonly json: boolean;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** The result: as JSON for programs, as text for people. */
  result(value: unknown, text: string, kind?: Kind): void;
  /** One of results that come one after the other: for programs, a JSON value in a line of its own. */
  next(value: unknown, text: string, kind?: Kind): void;
  /** Bytes of others: as they are, but on a terminal as text that does not steer it. Resolves when there is room for more. */
  bytes(chunk: Uint8Array): Promise<void>;
  /** Something worth saying to people only: with --json nothing is said beside the result. */
  note(text: string): void;
  /** What somebody must do while the command waits for it: with --json, an object in a line of standard error. */
  demand(sentence: string, command: string): void;
  /** A table as wide as the terminal allows. @param none what is said where it has no rows */
  table(head: readonly string[], rows: readonly (readonly string[])[], none: string): string;
  /** Which page of a list it was, where there are others. @param what is listed */
  page(page: Page, what: string): void;
  /** Columns of the terminal; undefined where standard output is none. */
  readonly width: number | undefined;
  /** Tells people how something that takes longer goes on. With --json, only on a terminal, where nothing of it stays. */
  progress(quietMs?: number): Progress;
  /** Colours where standard output is a terminal. */
  paint(style: Style, text: string): string;
}

/** Takes everything and says nothing. */
const SILENT: OutputStream = { write: () => true };

export function createOutput(
  stdout: NodeJS.WriteStream,
  stderr: NodeJS.WriteStream,
  options: { readonly json: boolean; readonly colours: boolean },
): Output {
  const decoder = new TextDecoder();
  // A terminal that does not know its width says 0.
  const width = stdout.isTTY === true ? stdout.columns || undefined : undefined;
  const note = (text: string) => {
    if (!options.json) stderr.write(`${terminalText(text, options.colours)}\n`);
  };
  return {
    json: options.json,
    width,
    stdout,
    stderr,
    result(value, text, kind = 'own') {
      const body = options.json ? jsonText(value, 2) : SHOW[kind](text, options.colours);
      if (body !== '') stdout.write(body.endsWith('\n') ? body : `${body}\n`);
    },
    next(value, text, kind = 'own') {
      stdout.write(`${options.json ? jsonText(value) : SHOW[kind](text, options.colours)}\n`);
    },
    async bytes(chunk) {
      const shown =
        stdout.isTTY === true ? terminalText(decoder.decode(chunk, { stream: true }), false) : chunk;
      if (!stdout.write(shown)) await once(stdout, 'drain');
    },
    note,
    demand(sentence, command) {
      if (options.json) stderr.write(`${jsonText({ demand: sentence, command })}\n`);
      else note(`${sentence}:\n  ${command}`);
    },
    table(head, rows, none) {
      if (rows.length === 0) note(none);
      return renderTable(head, rows, width);
    },
    page({ page, total_pages: pages, total }, what) {
      if (pages <= 1) return;
      const next = page < pages ? `; more with --page ${page + 1}` : '';
      note(`page ${page} of ${pages} (${total} ${what})${next}`);
    },
    progress: (quietMs) => startProgress(options.json && stderr.isTTY !== true ? SILENT : stderr, quietMs),
    paint: (style, text) => (options.colours ? styleText(style, text, { validateStream: false }) : text),
  };
}
