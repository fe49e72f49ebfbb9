import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

export interface OutputStream {
  write(text: string): boolean;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Results go to standard output, everything about the way there to standard error. */
export interface Output {
  readonly json: boolean;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** The result: as JSON for programs, as text for people. */
  result(value: unknown, text: string): void;
  /** Something worth saying to people only. */
  note(text: string): void;
  /** Colours where standard output is a terminal. */
  paint(style: Style, text: string): string;
}

export function createOutput(
  stdout: NodeJS.WriteStream,
  stderr: NodeJS.WriteStream,
  options: { readonly json: boolean; readonly colours: boolean },
): Output {
  return {
    json: options.json,
    stdout,
    stderr,
    result(value, text) {
      const body = options.json ? JSON.stringify(value, null, 2) : text;
      if (body !== '') stdout.write(body.endsWith('\n') ? body : `${body}\n`);
    },
    note(text) {
      stderr.write(`${text}\n`);
    },
    paint: (style, text) => (options.colours ? styleText(style, text, { validateStream: false }) : text),
  };
}
