import { AppError } from '@skerry/protocol';
import {
  ABI_LIMITS,
  type AbiField,
  type AbiType,
  declarationOf,
  type EventDefinition,
  type EventParameter,
} from './types.ts';

const NAME = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const SUFFIX = /^\[([0-9]*)\]/;

const refuse = (reason: string): AppError => new AppError('INVALID_ABI', reason);

function parseName(name: string, place: number): string {
  if (name === '') return `arg${place}`;
  if (!NAME.test(name) || name.length > ABI_LIMITS.nameChars)
    throw refuse(`${JSON.stringify(name.slice(0, 40))} is not a name`);
  return name;
}

function parseElementary(text: string): AbiType {
  if (text === 'address' || text === 'bool' || text === 'bytes' || text === 'string') return { kind: text };
  const number = /^(uint|int|bytes)([1-9][0-9]{0,2})?$/.exec(text);
  const size = Number(number?.[2] ?? 256);
  if (number?.[1] === 'bytes' && size <= 32) return { kind: 'fixed_bytes', sizeBytes: size };
  if ((number?.[1] === 'uint' || number?.[1] === 'int') && size <= 256 && size % 8 === 0)
    return { kind: number[1], bits: size };
  if (text === 'function') return { kind: 'fixed_bytes', sizeBytes: 24 };
  throw refuse(`${JSON.stringify(text.slice(0, 40))} is not a type that an event may have`);
}

/** `[2][]` behind an element type. */
function parseSuffixes(of: AbiType, text: string, depth: number): AbiType {
  if (text === '') return of;
  const match = SUFFIX.exec(text);
  if (!match || depth > ABI_LIMITS.typeDepth) throw refuse('an array is written type[] or type[length]');
  const length = match[1] === '' ? null : Number(match[1]);
  if (length !== null && (length < 1 || length > ABI_LIMITS.arrayLength))
    throw refuse(`a fixed array has 1 to ${ABI_LIMITS.arrayLength} elements`);
  return parseSuffixes({ kind: 'array', of, length }, text.slice(match[0].length), depth + 1);
}

function checkNames(fields: readonly AbiField[], what: string): void {
  if (fields.length > ABI_LIMITS.parametersPerEvent)
    throw refuse(`${what} has ${fields.length} parameters; at most ${ABI_LIMITS.parametersPerEvent}`);
  if (new Set(fields.map(({ name }) => name)).size !== fields.length)
    throw refuse(`${what} has two parameters of one name`);
}

function checkEvent(event: EventDefinition): EventDefinition {
  checkNames(event.parameters, `event ${event.name}`);
  const indexed = event.parameters.filter((parameter) => parameter.indexed).length;
  const most = event.anonymous ? 4 : 3;
  if (indexed > most) throw refuse(`event ${event.name} has ${indexed} indexed parameters; at most ${most}`);
  const { length } = declarationOf(event);
  if (length > ABI_LIMITS.declarationChars)
    throw refuse(
      `the declaration of event ${event.name} has ${length} characters; at most ${ABI_LIMITS.declarationChars}`,
    );
  return event;
}

/** Splits at commas that stand in no parentheses. */
function splitList(text: string): string[] {
  if (text.trim() === '') return [];
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '(') depth++;
    else if (char === ')') depth--;
    else if (char === ',' && depth === 0) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
    if (depth < 0) throw refuse('a parenthesis is closed that was not opened');
  }
  if (depth !== 0) throw refuse('a parenthesis is not closed');
  parts.push(text.slice(start));
  return parts;
}

function parseWrittenParameter(text: string, place: number, depth: number): EventParameter {
  if (depth > ABI_LIMITS.typeDepth) throw refuse('the types are nested too deeply');
  const trimmed = text.trim();
  const open = trimmed.startsWith('(') || trimmed.startsWith('tuple(');
  const close = open ? trimmed.lastIndexOf(')') : -1;
  if (open && close < 0) throw refuse('a parenthesis is not closed');
  const match = /^(\S*)(?:\s+(indexed))?(?:\s+(\S+))?$/.exec(open ? trimmed.slice(close + 1) : trimmed);
  if (!match) throw refuse(`${JSON.stringify(trimmed.slice(0, 60))} is not a parameter`);
  const [, typeText = '', indexed, nameText = ''] = match;
  const name = parseName(nameText === 'indexed' ? '' : nameText, place);
  const isIndexed = indexed !== undefined || nameText === 'indexed';
  if (!open) {
    const bracket = typeText.indexOf('[');
    const base = bracket < 0 ? typeText : typeText.slice(0, bracket);
    const type = parseSuffixes(parseElementary(base), bracket < 0 ? '' : typeText.slice(bracket), depth);
    return { name, indexed: isIndexed, type };
  }
  const inner = trimmed.slice(trimmed.indexOf('(') + 1, close);
  const fields = splitList(inner).map((part, index) => parseWrittenParameter(part, index, depth + 1));
  return { name, indexed: isIndexed, type: parseSuffixes(tupleOf(fields), typeText, depth) };
}

function tupleOf(fields: readonly EventParameter[]): AbiType {
  if (fields.length === 0) throw refuse('a tuple has at least one field');
  checkNames(fields, 'a tuple');
  return { kind: 'tuple', fields: fields.map(({ name, type }) => ({ name, type })) };
}

/** The word `event`, which may be left out, and the name. */
const HEAD = /^(?:event\s+)?([A-Za-z_$][A-Za-z0-9_$]*)\s*\(/;

/** Without `end`, where it ends with that, and without spaces before it. */
const without = (text: string, end: string): string =>
  text.endsWith(end) ? text.slice(0, -end.length).trimEnd() : text;

/**
 * `event Transfer(address indexed from, address indexed to, uint256 value)`. Anybody writes them: what follows the parameters
 * is taken off from the end, since one expression for all of it takes minutes for a few thousand spaces.
 */
export function parseDeclaration(text: string): EventDefinition {
  if (text.length > ABI_LIMITS.writtenChars) throw refuse('an event declaration is too long');
  const stated = without(text.trim(), ';');
  const named = without(stated, 'anonymous');
  const head = HEAD.exec(named);
  if (!head || !named.endsWith(')'))
    throw refuse(`${JSON.stringify(text.slice(0, 60))} is not an event declaration`);
  const parameters = splitList(named.slice(head[0].length, -1)).map((part, place) =>
    parseWrittenParameter(part, place, 0),
  );
  return checkEvent({ name: parseName(head[1]!, 0), anonymous: named !== stated, parameters });
}

interface JsonParameter {
  readonly name?: unknown;
  readonly type?: unknown;
  readonly indexed?: unknown;
  readonly components?: unknown;
}

function parseJsonParameter(value: unknown, place: number, depth: number): EventParameter {
  if (typeof value !== 'object' || value === null || depth > ABI_LIMITS.typeDepth)
    throw refuse('a parameter of the ABI is not an object');
  const { name = '', type, indexed = false, components } = value as JsonParameter;
  if (typeof name !== 'string' || typeof type !== 'string' || typeof indexed !== 'boolean')
    throw refuse('a parameter of the ABI has a field of the wrong type');
  const bracket = type.indexOf('[');
  const base = bracket < 0 ? type : type.slice(0, bracket);
  const element =
    base === 'tuple' ? tupleOf(parseJsonParameters(components, depth + 1)) : parseElementary(base);
  return {
    name: parseName(name, place),
    indexed,
    type: parseSuffixes(element, bracket < 0 ? '' : type.slice(bracket), depth),
  };
}

function parseJsonParameters(value: unknown, depth: number): EventParameter[] {
  if (!Array.isArray(value) || value.length > ABI_LIMITS.parametersPerEvent)
    throw refuse('the parameters of an event are a list');
  return value.map((one, place) => parseJsonParameter(one, place, depth));
}

/**
 * The events of an ABI: a list of declarations (`event Transfer(...)`), or of a JSON ABI's items, of which those that
 * are no events are left out. Throws INVALID_ABI.
 */
export function parseAbi(value: unknown): EventDefinition[] {
  if (!Array.isArray(value)) throw refuse('an ABI is a list');
  const events = value.flatMap((item: unknown) => {
    if (typeof item === 'string') return [parseDeclaration(item)];
    if (typeof item !== 'object' || item === null)
      throw refuse('an item of the ABI is neither text nor object');
    const { type, name, inputs, anonymous = false } = item as Record<string, unknown>;
    if (type !== 'event') return [];
    if (typeof name !== 'string' || name === '' || typeof anonymous !== 'boolean')
      throw refuse('an event of the ABI has a field of the wrong type');
    return [checkEvent({ name: parseName(name, 0), anonymous, parameters: parseJsonParameters(inputs, 0) })];
  });
  if (events.length === 0) throw refuse('the ABI has no event');
  if (events.length > ABI_LIMITS.eventsPerAbi)
    throw refuse(`the ABI has ${events.length} events; at most ${ABI_LIMITS.eventsPerAbi}`);
  return events;
}
