/** The heads of one answer, with those of the 1xx before it. */
const HEADS_MAX_BYTES = 16 * 1024;
/** What an endpoint says beside its status is not kept; more of it than this ends the connection. */
const REST_MAX_BYTES = 64 * 1024;
/** So much earlier than an endpoint says that it closes an idle connection, it is not used any more. */
const KEEP_MARGIN_MS = 1_000;

const PREFIX = 'HTTP/1.';
const HEAD_END = '\r\n\r\n';
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: .*)?$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9a-z-]+):(.*)$/i;
const FOLD = /\r\n[ \t]+/g;
const CHUNK = /^([0-9a-f]{1,8})[ \t]*(?:;.*)?$/i;

/** What came is no answer. `code`: as Node's client has it. */
export class BadAnswer extends Error {
  override readonly name = 'BadAnswer';
  readonly code: string | undefined;

  constructor(code?: string) {
    super('the answer cannot be read');
    this.code = code;
  }
}

export interface AnswerHead {
  readonly status: number;
  /** The header, as it came. */
  readonly retryAfter: string | undefined;
  /** How long the connection waits for a request after this one, as far as the endpoint says; 0: it is closed. */
  readonly keepMs: number;
  /** How long the rest is (RFC 9112, section 6.3): in bytes, in chunks, or until the connection ends. */
  readonly rest: number | 'chunked' | 'open';
}

type Fields = ReadonlyMap<string, string>;

function parseFields(lines: readonly string[]): Fields {
  const fields = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined) throw new BadAnswer('HPE_INVALID_HEADER_TOKEN');
    const key = name.toLowerCase();
    const before = fields.get(key);
    fields.set(key, before === undefined ? value!.trim() : `${before}, ${value!.trim()}`);
  }
  return fields;
}

/** A length that can be read in two ways is none. */
function restOf(status: number, isOld: boolean, fields: Fields): AnswerHead['rest'] {
  if (status < 200 || status === 204 || status === 304) return 0;
  const coding = fields.get('transfer-encoding');
  const length = fields.get('content-length');
  if (coding !== undefined)
    return coding.toLowerCase() === 'chunked' && length === undefined && !isOld ? 'chunked' : 'open';
  return length !== undefined && /^[0-9]{1,15}$/.test(length) ? Number(length) : 'open';
}

/** RFC 9112, section 9.3; `Keep-Alive: timeout=5` is what most servers say of themselves. */
function keepMsOf(isOld: boolean, fields: Fields): number {
  const options = (fields.get('connection') ?? '').toLowerCase().split(',');
  const has = (option: string) => options.some((one) => one.trim() === option);
  if (has('close') || (isOld && !has('keep-alive'))) return 0;
  const seconds = /\btimeout=([0-9]{1,9})\b/i.exec(fields.get('keep-alive') ?? '')?.[1];
  return seconds === undefined
    ? Number.POSITIVE_INFINITY
    : Math.max(0, Number(seconds) * 1_000 - KEEP_MARGIN_MS);
}

function parseHead(text: string): AnswerHead {
  const [first = '', ...lines] = text.replace(FOLD, ' ').split('\r\n');
  const [, minor, digits] = STATUS_LINE.exec(first) ?? [];
  if (digits === undefined) throw new BadAnswer('HPE_INVALID_STATUS');
  const fields = parseFields(lines);
  const [status, isOld] = [Number(digits), minor === '0'];
  return {
    status,
    retryAfter: fields.get('retry-after'),
    keepMs: keepMsOf(isOld, fields),
    rest: restOf(status, isOld, fields),
  };
}

/**
 * Reads one answer to a POST (RFC 9112), piece by piece: of its head what a delivery needs, and of the rest only where it
 * ends, so that the connection can serve again.
 */
export class AnswerReader {
  /** Of a head that has not ended; then, where they are chunked, the rest. */
  #text = '';
  #headBytes = 0;
  #restBytes = 0;
  /** Where the next chunk begins in the text. */
  #at = 0;
  #isTrailing = false;
  #isDone = false;
  /** Something came behind the end. */
  #isOver = false;
  #head: AnswerHead | undefined;

  /** undefined: it has not come yet. */
  get head(): AnswerHead | undefined {
    return this.#head;
  }

  /** All of it has come. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** How long the connection may wait for the next request; 0: it is of no more use. */
  get keepMs(): number {
    return this.#isDone && !this.#isOver && this.#head ? this.#head.keepMs : 0;
  }

  /** Throws BadAnswer where it is none, or too much. */
  push(bytes: Buffer): void {
    const text = bytes.toString('latin1');
    const rest = this.#head ? text : this.#readHeads(text);
    if (this.#head) this.#readRest(rest, this.#head);
  }

  /** @returns what came behind the last head */
  #readHeads(text: string): string {
    this.#text += text;
    for (;;) {
      if (!PREFIX.startsWith(this.#text.slice(0, PREFIX.length))) throw new BadAnswer('HPE_INVALID_CONSTANT');
      const end = this.#text.indexOf(HEAD_END);
      // Where its end is not there, it may have begun.
      const length = end < 0 ? this.#text.length - HEAD_END.length + 1 : end;
      if (this.#headBytes + length > HEADS_MAX_BYTES) throw new BadAnswer('HPE_HEADER_OVERFLOW');
      if (end < 0) return '';
      const head = parseHead(this.#text.slice(0, end));
      this.#headBytes += end + HEAD_END.length;
      const rest = this.#text.slice(end + HEAD_END.length);
      // Nobody asked for another protocol (RFC 9110, section 15.2.2).
      if (head.status === 101) throw new BadAnswer();
      if (head.status >= 200) {
        this.#head = head;
        this.#text = '';
        return rest;
      }
      this.#text = rest;
    }
  }

  #readRest(text: string, { rest }: AnswerHead): void {
    this.#restBytes += text.length;
    if (this.#restBytes > REST_MAX_BYTES) throw new BadAnswer();
    if (rest === 'open') return;
    if (rest === 'chunked') {
      this.#readChunks(text);
      return;
    }
    this.#isDone = this.#restBytes >= rest;
    this.#isOver = this.#restBytes > rest;
  }

  /** RFC 9112, section 7.1. */
  #readChunks(text: string): void {
    this.#text += text;
    for (;;) {
      const end = this.#text.indexOf('\r\n', this.#at);
      if (end < 0) return;
      const line = this.#text.slice(this.#at, end);
      this.#at = end + 2;
      if (this.#isTrailing && line === '') {
        this.#isDone = true;
        this.#isOver = this.#at < this.#text.length;
        return;
      }
      if (this.#isTrailing) continue;
      const [, digits] = CHUNK.exec(line) ?? [];
      if (digits === undefined) throw new BadAnswer();
      const size = Number.parseInt(digits, 16);
      if (size === 0) this.#isTrailing = true;
      else this.#at += size + 2;
    }
  }
}
