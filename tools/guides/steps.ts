/**
 * What a guide tells a person to type, read from its markdown. A block of `sh` is a step; a block of `text` behind it is what the
 * step prints, where "…" stands for whatever differs, alone in a line for any number of lines. The comment
 * `<!-- guide: on a server -->` before a step says that it needs the packages and systemd. Pure.
 */
export interface Step {
  readonly page: string;
  /** Of its first command, from 1. */
  readonly line: number;
  /** The heading above it. */
  readonly section: string;
  readonly script: string;
  readonly needsServer: boolean;
  readonly prints: string | undefined;
}

const ON_A_SERVER = '<!-- guide: on a server -->';
const TAG = /^\s*(<!-- guide:.*-->)\s*$/;
const FENCE = /^( *)```(\w*)\s*$/;
const HEADING = /^#+ (.*)$/;

interface Block {
  readonly language: string;
  readonly indent: string;
  readonly line: number;
  readonly lines: string[];
}

/** Reads one page, line by line. */
class Reader {
  readonly steps: Step[] = [];
  readonly #page: string;
  #section = '';
  #block: Block | undefined;
  #isTagged = false;
  /** Whether a block of text would belong to the last step. */
  #isOpen = false;

  constructor(page: string) {
    this.#page = page;
  }

  read(text: string, line: number): void {
    const fence = FENCE.exec(text);
    if (this.#block) {
      if (fence?.[2] === '') this.#close(this.#block);
      else
        this.#block.lines.push(
          text.startsWith(this.#block.indent) ? text.slice(this.#block.indent.length) : text,
        );
    } else if (fence) this.#block = { language: fence[2]!, indent: fence[1]!, line: line + 1, lines: [] };
    else this.#readProse(text, line);
  }

  #readProse(text: string, line: number): void {
    const [, tag] = TAG.exec(text) ?? [];
    if (tag !== undefined && tag !== ON_A_SERVER)
      throw new Error(`${this.#page}:${line}: ${tag} is not ${ON_A_SERVER}`);
    if (tag !== undefined) this.#isTagged = true;
    const [, section] = HEADING.exec(text) ?? [];
    if (section === undefined) return;
    this.#section = section;
    this.#isOpen = false;
  }

  #close({ language, line, lines }: Block): void {
    this.#block = undefined;
    const last = this.steps.at(-1);
    if (language === 'text' && this.#isOpen && last)
      this.steps[this.steps.length - 1] = { ...last, prints: lines.join('\n') };
    this.#isOpen = language === 'sh';
    if (language !== 'sh') return;
    const step = { page: this.#page, line, section: this.#section, script: lines.join('\n') };
    this.steps.push({ ...step, needsServer: this.#isTagged, prints: undefined });
    this.#isTagged = false;
  }
}

/** The steps of a page, in their order. Throws where a comment for guides says what nobody knows. */
export function readSteps(page: string, markdown: string): Step[] {
  const reader = new Reader(page);
  for (const [index, text] of markdown.split('\n').entries()) reader.read(text, index + 1);
  return reader.steps;
}

const escapeRegExp = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

const patternOf = (line: string) =>
  line.trim() === '…' ? '(?:.*\\n)*?' : `${line.trimEnd().split('…').map(escapeRegExp).join('.*')}[ \\t]*\\n`;

/** Whether something prints what a guide says, after what it says of its progress where it takes long: lines that begin in lower case. */
export const isPrinted = (expected: string, printed: string): boolean =>
  new RegExp(`^(?:[a-z].*\\n)*?${expected.trimEnd().split('\n').map(patternOf).join('')}$`).test(
    `${printed.trimEnd()}\n`,
  );
