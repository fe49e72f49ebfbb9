import { ERRORS, type ErrorCode } from '../errors.ts';
import { type Static, type TObject, type TSchema, type TSchemaOptions, Type } from '../type.ts';

/** The HTTP contract as data: what a service answers, checks and documents, and what its clients send, follow from it. */

/** The classes of the specification ("Limits"), and one for what costs nothing and must answer always. */
export const RATE_CLASSES = ['general', 'authenticated', 'heavy', 'unlimited'] as const;
export type RateClass = (typeof RATE_CLASSES)[number];

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** An answer that is no JSON, or may come in several forms. The schema of JSON among them holds for JSON answers. */
export interface Content {
  readonly description: string;
  /** By media type; empty where the answer has no body. */
  readonly content: Readonly<Record<string, TSchema>>;
}

/** A schema is an answer in JSON. */
export type AnswerForm = TSchema | Content;

/** A body that is JSON: the server checks it by its schema. */
export interface JsonBody {
  readonly kind: 'json';
  readonly schema: TSchema;
  /** An object by the rules of signed text (`scanJsonObject`), under any content type of text, no value turned into another type. */
  readonly isStrict?: true;
}

/** A signed message. What checks it is the node's intake, on the exact bytes that the signature covers. */
export interface SignedBody {
  readonly kind: 'signed';
  /** The envelope with this type and content; both are in the document. */
  readonly schema: TSchema;
}

/** Bytes, whole before the handler begins. Those of JSON are taken under any content type of text. */
export interface BytesBody {
  readonly kind: 'bytes';
  // `*/*` for any.
  readonly contentType: string;
  /** What they are. */
  readonly description: string;
}

/** A multipart form, which the handler reads piece by piece. A field of bytes has the schema `Bytes`. */
export interface FormBody {
  readonly kind: 'form';
  readonly fields: TObject;
}

/** A body that the handler reads as it comes, in one of several forms. */
export interface StreamBody {
  readonly kind: 'stream';
  readonly content: Readonly<Record<string, TSchema>>;
}

export type Body = (JsonBody | SignedBody | BytesBody | FormBody | StreamBody) & {
  /** No body is taken, too: as no bytes, or as an empty object where JSON is strict. */
  readonly isOptional?: true;
  /** The longest body in bytes; the server's general limit where it is left out. */
  readonly limitBytes?: number;
};

/** A request that the contract allows, and what answers it. Values of parameters are as in the address. */
export interface Example {
  readonly params?: Readonly<Record<string, string | number>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: unknown;
  /** Status 200, or the lowest that the operation has. */
  readonly answer: unknown;
}

/**
 * Examples of a table's operations, by their ids. They stand beside it (`examples/`): clients import tables, and would carry them
 * along. Who writes a document puts them together (`withExamples`).
 */
export type Examples = Readonly<Record<string, Example>>;

/** That nodes of the deployed network have this route, too, by the same method and path (docs/compatibility.md). */
export interface Deployed {
  /** The route there, where its path is another one: `GET /api/v0/p2p/pubsub/pub`. */
  readonly route?: string;
  /** What is answered otherwise on purpose, and why; left out where nothing is that a client could see. */
  readonly differs?: string;
}

/** One thing that a service does for its callers. Its key in its table is its id. */
export interface Operation {
  readonly method: Method;
  /** Methods beside it that the handler answers, too. */
  readonly also?: readonly (Method | 'HEAD')[];
  /** Parameters as `:name`, the rest of a path as `*`. */
  readonly path: string;
  readonly summary: string;
  /** The chapter of the document; the first part of the path behind `/api/v0/` where it is left out. */
  readonly tag?: string;
  /** Which rate counts requests; not counted where it is left out. */
  readonly rateClass?: RateClass;
  readonly params?: TObject;
  readonly query?: TObject;
  readonly body?: Body;
  /** By status. What says `{status: "error"}` is a refusal, also where it has a form of its own. */
  readonly answers: Readonly<Record<number, AnswerForm>>;
  /** Deployed clients look for this status, in the place of 400, where a request is wrong (docs/decisions.md 8). */
  readonly refusesWith?: 422;
  /** The codes that it answers beside those that follow from its class, parameters and body (`errorsOf`). */
  readonly errors: readonly ErrorCode[];
  /** Where a document is written from it (`Examples`). */
  readonly example?: Example;
  readonly deployed?: Deployed;
}

export type Api = Readonly<Record<string, Operation>>;

/** Bytes: in a document, a file of a form or the body of an answer. */
export const Bytes = Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' });

export const orNull = <T extends TSchema>(schema: T, options: TSchemaOptions = {}) =>
  Type.Union([schema, Type.Null()], options);

/** A parameter that may be left out, since the server has a value for it. */
export const defaulted = <T extends TSchema, const D>(schema: T, value: D): T & { readonly default: D } =>
  Object.assign(schema, { default: value });

/** An answer of another media type. */
export const content = (description: string, ...types: readonly string[]) => ({
  description,
  content: Object.fromEntries(types.map((type) => [type, Bytes])),
});

export const text = (description: string, type = 'text/plain') => ({
  description,
  content: { [type]: Type.String() },
});

/**
 * Of a GET that has none: a filter that is not there is refused, since its caller would take everything for what it asked for. What a
 * service says of itself (status, version, metrics, documents) does without: probes ask for it with whatever they like.
 */
export const NO_PARAMETERS = Type.Object({}, { additionalProperties: false });

/** No keyword of JSON Schema is called `content`. */
export const isContent = (answer: AnswerForm): answer is Content => 'content' in answer;

const BODY_ERRORS: Readonly<Record<Body['kind'], readonly ErrorCode[]>> = {
  json: ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'INVALID_JSON', 'INVALID_PARAMETERS'],
  signed: [
    'BODY_TOO_LARGE',
    'UNSUPPORTED_MEDIA_TYPE',
    'INVALID_JSON',
    'INVALID_ENVELOPE',
    'UNKNOWN_FIELD',
    'UNKNOWN_MESSAGE_TYPE',
    'UNKNOWN_CHAIN',
    'INVALID_CONTENT',
    'INVALID_ADDRESS',
    'TIMESTAMP_IN_FUTURE',
    'SIGNATURE_REQUIRED',
    'INVALID_SIGNATURE',
    'NOT_PERMITTED',
    'OVERLOADED',
    'STORAGE_FULL',
  ],
  bytes: ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
  form: ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'INVALID_PARAMETERS'],
  stream: ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'INVALID_JSON'],
};

/** A server reads the body of such a request also where the operation takes none. */
const BODY_METHODS: readonly string[] = ['POST', 'PUT', 'PATCH', 'DELETE'] satisfies Method[];
const UNASKED_BODY_ERRORS = ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'INVALID_JSON'] as const;

/** Whether a schema refuses fields that it does not name. */
const isClosed = (schema: TSchema | undefined) =>
  schema !== undefined && (schema as { additionalProperties?: unknown }).additionalProperties === false;

/** Every code that an operation may answer: what it says, and what follows from its class, parameters and body. */
export function errorsOf({
  method,
  also = [],
  errors,
  params,
  query,
  body,
  rateClass,
}: Operation): ErrorCode[] {
  const mayHaveBody = [method, ...also].some((one) => BODY_METHODS.includes(one));
  const takesUnknown = isClosed(query) || (body?.kind === 'json' && isClosed(body.schema));
  return [
    ...new Set<ErrorCode>([
      ...errors,
      ...(params || query ? (['INVALID_PARAMETERS'] as const) : []),
      ...(takesUnknown ? (['UNKNOWN_FIELD'] as const) : []),
      ...(body ? BODY_ERRORS[body.kind] : mayHaveBody ? UNASKED_BODY_ERRORS : []),
      ...(rateClass === undefined || rateClass === 'unlimited' ? [] : (['RATE_LIMITED'] as const)),
      'INTERNAL',
    ]),
  ];
}

const BAD_REQUEST = 400;

/** The status of a refusal: the code's own, unless the operation's callers look for another one. */
export function statusOf(code: ErrorCode, operation: Pick<Operation, 'refusesWith'> | undefined): number {
  const { httpStatus } = ERRORS[code];
  return httpStatus === BAD_REQUEST ? (operation?.refusesWith ?? httpStatus) : httpStatus;
}

type Simplify<T> = { [K in keyof T]: T[K] };

/** What the server's handler gets of a place: every default is filled in. */
type Given<S> = S extends TSchema ? Static<S> : Record<never, never>;

type DefaultedKeys<P> = { [K in keyof P]: P[K] extends { readonly default: unknown } ? K : never }[keyof P];

/** What a caller sends: what has a default may be left out. */
type Sent<S> =
  S extends TObject<infer P>
    ? Simplify<
        Omit<Static<S>, DefaultedKeys<P>> & Partial<Pick<Static<S>, DefaultedKeys<P> & keyof Static<S>>>
      >
    : never;

type OrUndefined<T> = { [K in keyof T]: Record<never, never> extends Pick<T, K> ? T[K] | undefined : T[K] };

export type ParamsOf<O extends Operation> = Given<O['params']>;
export type QueryOf<O extends Operation> = Given<O['query']>;
/** What is undefined is left out. */
export type SentQuery<O extends Operation> = OrUndefined<Sent<O['query']>>;

/** A body as the handler gets it; forms and streams it reads itself. */
export type BodyOf<O extends Operation> = O['body'] extends JsonBody
  ? Static<O['body']['schema']>
  : O['body'] extends SignedBody | BytesBody
    ? Uint8Array
    : unknown;

/** A body as the caller hands it over: a value that becomes JSON, signed text, bytes, a form. */
export type SentBody<O extends Operation> = O['body'] extends JsonBody
  ? Static<O['body']['schema']>
  : O['body'] extends SignedBody
    ? string
    : O['body'] extends BytesBody
      ? Uint8Array | string
      : O['body'] extends FormBody
        ? FormData
        : unknown;

type JsonContent<C> = C extends { readonly 'application/json': infer S extends TSchema } ? Static<S> : never;

/** What an answer in JSON says. */
export type JsonOf<A> = A extends { readonly content: infer C }
  ? JsonContent<C>
  : A extends TSchema
    ? Static<A>
    : never;

type JsonOfAll<A> = { [S in keyof A]: JsonOf<A[S]> }[keyof A];

/** What a caller may be answered in JSON, whatever the status. Refusals are thrown. */
export type AnswerOf<O extends Operation> = Exclude<JsonOfAll<O['answers']>, { status: 'error' }>;
