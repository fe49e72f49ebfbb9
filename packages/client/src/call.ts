import {
  type AnswerForm,
  type AnswerOf,
  isContent,
  type Operation,
  type ParamsOf,
  type SentBody,
  type SentQuery,
} from '@skerry/protocol/api/operation';
import { AppError, createParser, fieldsOf, isErrorCode } from '@skerry/protocol/forms';
import { type TArray, type TObject, type TSchema, Type } from '@skerry/protocol/type';
import { readText } from './reads/read-body.ts';
import type { ReadPlace } from './reads/read-place.ts';
import { type RequestOptions, readRefusal, request, requestText, type TextAnswer } from './request.ts';

type Part<Name extends string, Has, T> = Has extends object
  ? Record<never, never> extends T
    ? { readonly [Key in Name]?: T }
    : { readonly [Key in Name]: T }
  : unknown;

/** What an operation is asked with: the parts that it has. */
export type CallInput<O extends Operation> = Part<'params', O['params'], ParamsOf<O>> &
  Part<'query', O['query'], SentQuery<O>> &
  Part<'body', O['body'], SentBody<O>>;

export interface CallOptions
  extends Pick<RequestOptions, 'headers' | 'signal' | 'timeoutMs' | 'isKnownByHash'> {
  /** Kept up to date with what is answered, and sent along. */
  readonly place?: ReadPlace;
}

interface Sending {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** The address of an operation, its query included; what is undefined is left out. */
export function urlOfCall<O extends Operation>(
  baseUrl: string,
  { path }: O,
  input: Omit<CallInput<O>, 'body'>,
): string {
  const { params = {}, query = {} } = input as Sending;
  const filled = path
    .replace(/:([A-Za-z_]+)/g, (_, name: string) => encodeURIComponent(String(params[name])))
    .replace(/\*$/, () => String(params['*']).split('/').map(encodeURIComponent).join('/'));
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const asked = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
  return `${baseUrl.replace(/\/+$/, '')}${filled}${asked}`;
}

/** A body as it is sent: what the caller has made of it already, or JSON. */
const isMade = (body: unknown): body is NonNullable<RequestOptions['body']> =>
  typeof body === 'string' || body instanceof Uint8Array || body instanceof Blob || body instanceof FormData;

function requestOptionsOf(
  operation: Operation,
  { body }: Sending,
  { place, ...options }: CallOptions,
): RequestOptions {
  const isBytes = operation.body?.kind === 'bytes' && body instanceof Uint8Array;
  return {
    ...options,
    method: operation.method,
    headers: {
      ...place?.headersOf(operation),
      ...(isBytes ? { 'content-type': (operation.body as { contentType: string }).contentType } : {}),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body: isMade(body) ? body : JSON.stringify(body) }),
    isAnswer: ({ status }) => operation.answers[status] !== undefined,
  };
}

async function callBy<O extends Operation, Answer extends Pick<TextAnswer, 'headers'>>(
  ask: (url: string, options: RequestOptions) => Promise<Answer>,
  baseUrl: string,
  operation: O,
  input: CallInput<O>,
  options: CallOptions,
): Promise<Answer> {
  const { place } = options;
  let headers: TextAnswer['headers'] | undefined;
  try {
    const url = urlOfCall(baseUrl, operation, input);
    const response = await ask(url, requestOptionsOf(operation, input as Sending, options));
    ({ headers } = response);
    return response;
  } finally {
    place?.noteAnswer(operation, headers);
  }
}

/**
 * Asks for an operation, and leaves the reading of its answer to the caller: for bytes and streams. Throws what the service refuses
 * with, or UPSTREAM_UNAVAILABLE.
 */
export const callRaw = <O extends Operation>(
  baseUrl: string,
  operation: O,
  input: CallInput<O>,
  options: CallOptions = {},
): Promise<Response> => callBy(request, baseUrl, operation, input, options);

/** A schema that lets fields through which it does not name: a newer service may answer more. */
function openOf(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(openOf);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    ([key, value]) => !(key === 'additionalProperties' && value === false),
  );
  return Object.fromEntries(kept.map(([key, value]) => [key, openOf(value)]));
}

/** Checks what a service answers: a field in another form is UNEXPECTED_ANSWER, one that the schema does not name passes. */
export const createAnswerParser = <T extends TSchema>(schema: T, what: string) =>
  createParser(openOf(schema) as T, what, 'UNEXPECTED_ANSWER');

/** Throws UNEXPECTED_ANSWER. @param from what the text came from */
export function parseJson(text: string, from: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AppError('UNEXPECTED_ANSWER', `${from} returned an answer that is not JSON`, { cause: error });
  }
}

type Parser = (value: unknown) => unknown;
const parsers = new WeakMap<AnswerForm, Parser>();

function parserOf(form: AnswerForm): Parser | undefined {
  const known = parsers.get(form);
  if (known) return known;
  const schema = isContent(form) ? form.content['application/json'] : form;
  if (!schema) return undefined;
  const parser = createAnswerParser(schema, 'the answer');
  parsers.set(form, parser);
  return parser;
}

const isRefusal = (body: unknown): boolean => {
  const { status, code } = fieldsOf(body);
  return status === 'error' && isErrorCode(code);
};

async function readAnswer(operation: Operation, response: TextAnswer): Promise<unknown> {
  const form = operation.answers[response.status];
  const from = `${operation.method} ${response.url}`;
  const text = await readText(response);
  const body = parseJson(text, from);
  if (!response.ok && isRefusal(body)) throw readRefusal(text, response);
  const parse = form && parserOf(form);
  if (!parse) throw new AppError('UNEXPECTED_ANSWER', `${from} returned status ${response.status}`);
  try {
    return parse(body);
  } catch (error) {
    const { message, details } = error as AppError;
    throw new AppError('UNEXPECTED_ANSWER', `${from}: ${message}`, { cause: error, details });
  }
}

/**
 * Asks for an operation, and gives its answer, whose form is checked; fields that the contract does not name stay in it.
 * Throws what the service refuses with, UPSTREAM_UNAVAILABLE where none answers, UNEXPECTED_ANSWER where the answer has another form.
 */
export async function call<O extends Operation>(
  baseUrl: string,
  operation: O,
  input: CallInput<O>,
  options: CallOptions = {},
): Promise<AnswerOf<O>> {
  const answer = await callBy(requestText, baseUrl, operation, input, options);
  return (await readAnswer(operation, answer)) as AnswerOf<O>;
}

/**
 * The same, and when the service says that it answers (`Date`, RFC 9110), in Unix milliseconds; undefined where it does not say. What it says
 * of times is by that clock, which need not be ours.
 */
export async function callDated<O extends Operation>(
  baseUrl: string,
  operation: O,
  input: CallInput<O>,
  options: CallOptions = {},
): Promise<{ readonly answer: AnswerOf<O>; readonly atMs: number | undefined }> {
  const response = await callBy(requestText, baseUrl, operation, input, options);
  const atMs = Date.parse(response.headers.get('date') ?? '');
  const answer = (await readAnswer(operation, response)) as AnswerOf<O>;
  return { answer, atMs: Number.isNaN(atMs) ? undefined : atMs };
}

/** A row of a list that has not the form that the contract says. */
export interface UnreadableRow {
  readonly row: unknown;
  readonly error: AppError;
}

/** The names of the lists in an answer. */
type ListOf<Answer> = {
  [Key in keyof Answer]-?: Answer[Key] extends readonly unknown[] ? Key : never;
}[keyof Answer] &
  string;

interface Rows {
  /** The operation with rows of any form. */
  readonly page: Operation;
  readonly parse: Parser;
}
const rowsOf = new WeakMap<Operation, Map<string, Rows>>();

function rowsIn(operation: Operation, list: string): Rows {
  const known = rowsOf.get(operation) ?? new Map<string, Rows>();
  rowsOf.set(operation, known);
  const found = known.get(list);
  if (found) return found;
  const whole = operation.answers[200] as TObject<Record<string, TArray>>;
  const properties = { ...whole.properties, [list]: Type.Array(Type.Unknown()) };
  const page = { ...operation, answers: { ...operation.answers, 200: { ...whole, properties } } };
  const parse = createAnswerParser(whole.properties[list]!.items, `a row of ${list}`);
  const rows = { page, parse };
  known.set(list, rows);
  return rows;
}

/**
 * The same for a list of what many people made, or that a stranger's node gives: a row in another form than the contract has is
 * left out and told beside the others, which it does not hide.
 * @param list the name of the list in the answer
 */
export async function callRows<O extends Operation, List extends ListOf<AnswerOf<O>>>(
  baseUrl: string,
  operation: O,
  list: List,
  input: CallInput<O>,
  options: CallOptions = {},
): Promise<AnswerOf<O> & { readonly unreadable: readonly UnreadableRow[] }> {
  const { page, parse } = rowsIn(operation, list);
  const answer = await readAnswer(page, await callBy(requestText, baseUrl, page as O, input, options));
  const unreadable: UnreadableRow[] = [];
  const rows = (fieldsOf(answer)[list] as readonly unknown[]).filter((row) => {
    try {
      return parse(row) !== undefined;
    } catch (error) {
      unreadable.push({ row, error: error as AppError });
      return false;
    }
  });
  return Object.assign(answer as AnswerOf<O> & object, { [list]: rows, unreadable });
}
