import { type AbiField, type AbiType, type EventDefinition, isHashedWhenIndexed } from './types.ts';

/**
 * Reads the values of a log as JSON text, ready to be stored: integers as strings, addresses and bytes as lower-case
 * hexadecimal, indexed values of dynamic types as the hash that the chain keeps. Strict (Contract ABI specification,
 * "Formal Specification of the Encoding"): padding that is not what an encoder writes means that it is another event.
 */
export interface EventDecoder {
  readonly topicCount: number;
  /**
   * @param topics without the event's own, each `0x` and 64 digits
   * @param data `0x` and an even number of lower-case digits
   * @returns JSON of `{name: value}`, or undefined where the log does not have this form
   */
  decode(topics: readonly string[], data: string): string | undefined;
}

/**
 * Names are chosen by whoever declares an event, and are repeated with each value: a log that would become far longer than it
 * is does not fit. Many logs are written at once, and each has to be what the database takes.
 */
const TEXT_PER_DIGIT = 8;
const TEXT_MIN = 4_096;

/** Hexadecimal digits of one 32-byte word. */
const WORD = 64;
const ZEROS = '0'.repeat(WORD);
const ONES = 'f'.repeat(WORD);
/** Digits of the largest word that a double holds exactly: 12 digits are 48 bits. */
const SMALL_DIGITS = 12;
const SMALL_ZEROS = ZEROS.slice(SMALL_DIGITS);

class Mismatch extends Error {}
const mismatch = new Mismatch('the log does not have the form of the event');

interface Source {
  readonly hex: string;
  /**
   * Digits that may still be read. Offsets may point anywhere, also at each other; what an encoder writes is read once, and
   * costs no more than all of it.
   */
  left: number;
}

interface Reader {
  readonly dynamic: boolean;
  /** Words in the head: of the value itself, or 1 for the offset of a dynamic one. */
  readonly words: number;
  /** @param at digit where the value stands; @param base digit from which its offsets count */
  read(source: Source, at: number, base: number): string;
}

const sourceOf = (hex: string): Source => ({ hex, left: hex.length });

function take(source: Source, at: number, length: number): string {
  if (at + length > source.hex.length) throw mismatch;
  source.left -= length;
  if (source.left < 0) throw mismatch;
  return source.hex.slice(at, at + length);
}

const word = (source: Source, at: number): string => take(source, at, WORD);

const unsignedText = (digits: string): string =>
  digits.startsWith(SMALL_ZEROS)
    ? String(Number.parseInt(digits.slice(WORD - SMALL_DIGITS), 16))
    : BigInt(`0x${digits}`).toString();

/** A length or an offset in bytes. */
function readSize(source: Source, at: number): number {
  const digits = word(source, at);
  if (!digits.startsWith(SMALL_ZEROS)) throw mismatch;
  return Number.parseInt(digits.slice(WORD - SMALL_DIGITS), 16);
}

/** A reader of one word. */
const single = (parse: (digits: string) => string): Reader => ({
  dynamic: false,
  words: 1,
  read: (source, at) => parse(word(source, at)),
});

function integerParser(signed: boolean, bits: number): (digits: string) => string {
  const padding = WORD - bits / 4;
  if (!signed)
    return (digits) => {
      if (padding > 0 && !digits.startsWith(ZEROS.slice(0, padding))) throw mismatch;
      return `"${unsignedText(digits)}"`;
    };
  return (digits) => {
    const negative = Number.parseInt(digits[padding]!, 16) >= 8;
    if (!digits.startsWith((negative ? ONES : ZEROS).slice(0, padding))) throw mismatch;
    return negative ? `"${BigInt.asIntN(256, BigInt(`0x${digits}`))}"` : `"${unsignedText(digits)}"`;
  };
}

const ADDRESS_PADDING = ZEROS.slice(0, 24);

function parseAddressWord(digits: string): string {
  if (!digits.startsWith(ADDRESS_PADDING)) throw mismatch;
  return `"0x${digits.slice(24)}"`;
}

function parseBool(digits: string): string {
  if (!digits.startsWith(ZEROS.slice(1))) throw mismatch;
  if (digits[WORD - 1] === '0') return 'false';
  if (digits[WORD - 1] === '1') return 'true';
  throw mismatch;
}

function fixedBytesParser(sizeBytes: number): (digits: string) => string {
  const length = sizeBytes * 2;
  return (digits) => {
    if (digits.slice(length) !== ZEROS.slice(length)) throw mismatch;
    return `"0x${digits.slice(0, length)}"`;
  };
}

function readBytes(source: Source, at: number): string {
  return take(source, at + WORD, readSize(source, at) * 2);
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What JSON storage cannot hold as text (NUL, bytes that are not UTF-8) is given as the bytes. */
function textOf(digits: string): string {
  try {
    const text = utf8.decode(Buffer.from(digits, 'hex'));
    if (!text.includes('\0')) return JSON.stringify(text);
  } catch {
    // Not UTF-8.
  }
  return `"0x${digits}"`;
}

/** Elements one after another; those that are dynamic by offsets from the first head. */
function readSequence(source: Source, at: number, readers: readonly Reader[]): string[] {
  let head = at;
  return readers.map((reader) => {
    const place = reader.dynamic ? at + readSize(source, head) * 2 : head;
    head += reader.words * WORD;
    return reader.read(source, place, at);
  });
}

function arrayReader(of: Reader, length: number | null): Reader {
  const list = (source: Source, at: number, count: number) => {
    // Every element takes at least one word of the head, which bounds the count by what is there.
    if (count * of.words * WORD > source.hex.length - at) throw mismatch;
    return `[${readSequence(source, at, new Array<Reader>(count).fill(of)).join(',')}]`;
  };
  if (length === null)
    return {
      dynamic: true,
      words: 1,
      read: (source, at) => list(source, at + WORD, readSize(source, at)),
    };
  return {
    dynamic: of.dynamic,
    words: of.dynamic ? 1 : of.words * length,
    read: (source, at) => list(source, at, length),
  };
}

function tupleReader(fields: readonly AbiField[]): Reader {
  const readers = fields.map(({ type }) => readerOf(type));
  const names = fields.map(({ name }) => `${JSON.stringify(name)}:`);
  const dynamic = readers.some((reader) => reader.dynamic);
  return {
    dynamic,
    words: dynamic ? 1 : readers.reduce((sum, reader) => sum + reader.words, 0),
    read: (source, at) =>
      `{${readSequence(source, at, readers)
        .map((value, index) => names[index]! + value)
        .join(',')}}`,
  };
}

function readerOf(type: AbiType): Reader {
  switch (type.kind) {
    case 'uint':
    case 'int':
      return single(integerParser(type.kind === 'int', type.bits));
    case 'address':
      return single(parseAddressWord);
    case 'bool':
      return single(parseBool);
    case 'fixed_bytes':
      return single(fixedBytesParser(type.sizeBytes));
    case 'bytes':
      return { dynamic: true, words: 1, read: (source, at) => `"0x${readBytes(source, at)}"` };
    case 'string':
      return { dynamic: true, words: 1, read: (source, at) => textOf(readBytes(source, at)) };
    case 'array':
      return arrayReader(readerOf(type.of), type.length);
    case 'tuple':
      return tupleReader(type.fields);
  }
}

const hashReader: Reader = single((digits) => `"0x${digits}"`);

export function createEventDecoder(event: EventDefinition): EventDecoder {
  const indexed = event.parameters.filter((parameter) => parameter.indexed);
  const topicReaders = indexed.map(({ type }) => (isHashedWhenIndexed(type) ? hashReader : readerOf(type)));
  const dataReaders = event.parameters.filter((one) => !one.indexed).map(({ type }) => readerOf(type));
  let fromTopics = 0;
  let fromData = 0;
  // Values in the order of declaration: [from the topics?, place there].
  const places = event.parameters.map((one) =>
    one.indexed ? ([true, fromTopics++] as const) : ([false, fromData++] as const),
  );
  const names = event.parameters.map(({ name }) => `${JSON.stringify(name)}:`);
  return {
    topicCount: indexed.length,
    decode(topics, data) {
      if (topics.length !== indexed.length) return undefined;
      try {
        const ofTopics = topicReaders.map((reader, index) => reader.read(sourceOf(topics[index]!), 2, 2));
        const ofData = readSequence(sourceOf(data), 2, dataReaders);
        const values = places.map(
          ([isTopic, place], index) => names[index]! + (isTopic ? ofTopics[place]! : ofData[place]!),
        );
        const text = `{${values.join(',')}}`;
        return text.length > Math.max(TEXT_MIN, TEXT_PER_DIGIT * data.length) ? undefined : text;
      } catch (error) {
        if (error instanceof Mismatch) return undefined;
        throw error;
      }
    },
  };
}
