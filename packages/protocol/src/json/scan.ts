import { AppError } from '../errors.ts';
import { LIMITS } from '../limits.ts';

/**
 * A strict reader of JSON text from strangers (RFC 8259) that finds what `JSON.parse` hides: the exact text of each
 * member of the top-level object (a signature covers those bytes), repeated keys (two readers would see two messages),
 * and text that no database can keep (NUL, lone surrogates). It checks; `JSON.parse` builds the values.
 */
export interface ScannedObject {
  readonly value: Record<string, unknown>;
  /** The exact text of each top-level member's value. */
  readonly rawMembers: ReadonlyMap<string, string>;
}

const QUOTE = 0x22;
const [COMMA, COLON, MINUS] = [0x2c, 0x3a, 0x2d];
const BACKSLASH = 0x5c;
const [OPEN_OBJECT, CLOSE_OBJECT] = [0x7b, 0x7d];
const [OPEN_ARRAY, CLOSE_ARRAY] = [0x5b, 0x5d];
const TOO_DEEP = `more than ${LIMITS.jsonDepth} levels`;
const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
const isDigit = (code: number) => code >= 0x30 && code <= 0x39;
const isOfNumber = (code: number) => isDigit(code) || '-+.eE'.includes(String.fromCharCode(code));

const fail = (reason: string, position: number): never => {
  throw new AppError('INVALID_JSON', `not acceptable JSON: ${reason} at character ${position}`, {
    details: { position },
  });
};

/** Is told of each number as it is written, once it is one that can be kept. */
type OnNumber = (source: string) => void;

/**
 * Control characters, a backslash or half of a surrogate pair: what a string may not hold, or not as it is written. In a text that has none
 * of them a string ends at the next quote, and there is nothing more to check.
 */
const UNPLAIN = /[^ -[\]-\ud7ff\ue000-\uffff]/;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;

class Scanner {
  readonly text: string;
  at = 0;
  readonly #isPlain: boolean;
  readonly #onNumber: OnNumber | undefined;

  constructor(text: string, onNumber?: OnNumber) {
    this.text = text;
    this.#isPlain = !UNPLAIN.test(text);
    this.#onNumber = onNumber;
  }

  skipSpace(): void {
    while (isSpace(this.text.charCodeAt(this.at))) this.at++;
  }

  /** The character that is next. */
  get code(): number {
    return this.text.charCodeAt(this.at);
  }

  expect(code: number): void {
    if (this.code !== code) fail(`expected ${JSON.stringify(String.fromCharCode(code))}`, this.at);
    this.at++;
  }

  /** Reads a string and returns its value; the closed set of escapes is JSON.parse's. */
  readString(): string {
    const start = this.at;
    this.expect(QUOTE);
    return this.#isPlain ? this.readPlain(start) : this.readEscaped(start);
  }

  readPlain(start: number): string {
    const end = this.text.indexOf('"', this.at);
    if (end === -1) fail('a string without an end', start);
    this.at = end + 1;
    return this.text.slice(start + 1, end);
  }

  readEscaped(start: number): string {
    const { text } = this;
    let { at } = this;
    // Few steps, and nothing but numbers: each character of each message passes here.
    for (let code = text.charCodeAt(at); code !== QUOTE; code = text.charCodeAt(at)) {
      if (Number.isNaN(code)) fail('a string without an end', start);
      if (code < 0x20) fail('a control character in a string', at);
      at += code === BACKSLASH ? 2 : 1;
    }
    this.at = at;
    this.at++;
    const raw = this.text.slice(start, this.at);
    const value = raw.includes('\\') ? this.unescape(raw, start) : raw.slice(1, -1);
    if (value.includes('\0')) fail('a NUL character', start);
    if (!value.isWellFormed()) fail('half of a surrogate pair', start);
    return value;
  }

  unescape(raw: string, start: number): string {
    try {
      return JSON.parse(raw) as string;
    } catch {
      return fail('an unknown escape', start);
    }
  }

  skipNumber(): void {
    const start = this.at;
    NUMBER.lastIndex = start;
    const isNumber = NUMBER.test(this.text);
    if (isNumber) this.at = NUMBER.lastIndex;
    if (!isNumber || isOfNumber(this.text.charCodeAt(this.at))) fail('a malformed number', start);
    const raw = this.text.slice(start, this.at);
    if (!Number.isFinite(Number(raw))) fail('a number too large to keep', start);
    this.#onNumber?.(raw);
  }

  skipValue(depth: number): void {
    if (depth > LIMITS.jsonDepth) fail(TOO_DEEP, this.at);
    this.skipSpace();
    const { code } = this;
    if (code === OPEN_OBJECT) this.scanObject(depth);
    else if (code === OPEN_ARRAY) this.skipArray(depth);
    else if (code === QUOTE) this.readString();
    else if (code === MINUS || isDigit(code)) this.skipNumber();
    else this.skipWord();
  }

  skipWord(): void {
    const word = ['true', 'false', 'null'].find((candidate) => this.text.startsWith(candidate, this.at));
    if (word === undefined) fail('expected a value', this.at);
    else this.at += word.length;
  }

  skipArray(depth: number): void {
    this.expect(OPEN_ARRAY);
    this.skipSpace();
    if (this.code === CLOSE_ARRAY) {
      this.at++;
      return;
    }
    for (;;) {
      this.skipValue(depth + 1);
      this.skipSpace();
      if (this.code === CLOSE_ARRAY) break;
      this.expect(COMMA);
    }
    this.at++;
  }

  /** Walks an object; where asked, notes the exact text of each member's value. */
  scanObject(depth: number, rawMembers?: Map<string, string>): void {
    const keys = new Set<string>();
    this.expect(OPEN_OBJECT);
    this.skipSpace();
    if (this.code === CLOSE_OBJECT) {
      this.at++;
      return;
    }
    for (;;) {
      this.skipSpace();
      const keyAt = this.at;
      const key = this.readString();
      if (keys.has(key)) fail(`the key ${JSON.stringify(key)} twice`, keyAt);
      if (key === '__proto__') fail('the key "__proto__"', keyAt);
      keys.add(key);
      this.skipSpace();
      this.expect(COLON);
      this.skipSpace();
      const valueAt = this.at;
      this.skipValue(depth + 1);
      rawMembers?.set(key, this.text.slice(valueAt, this.at));
      this.skipSpace();
      if (this.code === CLOSE_OBJECT) break;
      this.expect(COMMA);
    }
    this.at++;
  }
}

/**
 * Refuses text that nests deeper than a Scanner takes, and nothing else: for text whose other rules are those of `JSON.parse`. What
 * walks the value may recurse then. Throws INVALID_JSON.
 */
export function checkJsonDepth(text: string): void {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) depth--;
    else if (depth >= LIMITS.jsonDepth && !isSpace(code)) fail(TOO_DEEP, at);
    else if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth++;
    else if (code === QUOTE) at = endOfString(text, at);
  }
}

/** Where a string ends that begins there; the end of the text where it does not. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (let code = text.charCodeAt(at); code !== QUOTE && at < text.length; code = text.charCodeAt(at))
    at += code === BACKSLASH ? 2 : 1;
  return at;
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new AppError('INVALID_JSON', 'the body is not UTF-8');
  }
}

/** Whether text is one acceptable JSON value. Throws INVALID_JSON, and what `onNumber` throws. Cost is linear in the length. */
export function scanJson(text: string, onNumber?: OnNumber): void {
  const scanner = new Scanner(text, onNumber);
  scanner.skipValue(1);
  scanner.skipSpace();
  if (scanner.at !== text.length) fail('text after the end', scanner.at);
}

/** Scans a body that must be one JSON object. Throws INVALID_JSON; never anything else. Cost is linear in the length. */
export function scanJsonObject(body: Uint8Array | string): ScannedObject {
  const text = typeof body === 'string' ? body : decodeUtf8(body);
  const scanner = new Scanner(text);
  scanner.skipSpace();
  if (scanner.code !== OPEN_OBJECT) fail('expected an object', scanner.at);
  const rawMembers = new Map<string, string>();
  scanner.scanObject(1, rawMembers);
  scanner.skipSpace();
  if (scanner.at !== text.length) fail('text after the end', scanner.at);
  return { value: JSON.parse(text) as Record<string, unknown>, rawMembers };
}
