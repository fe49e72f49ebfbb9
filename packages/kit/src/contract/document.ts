import {
  type AnswerForm,
  type Api,
  type Body,
  errorsOf,
  isContent,
  type Operation,
  type RateClass,
  statusOf,
} from '@skerry/protocol/api/operation';
import { ERRORS, type ErrorCode } from '@skerry/protocol/forms';
import { VERSION } from '../daemon/version.ts';
import { Components } from './components.ts';
import { addressOf } from './example.ts';
import { REST_OF_PATH, shownParametersOf } from './parameters.ts';

export interface ApiInfo {
  readonly title: string;
  readonly description: string;
}

/** Requests of one client in a minute, by class. */
export type PerMinute = Partial<Readonly<Record<RateClass, number>>>;

/** A document in the form of OpenAPI 3.1, as far as it is read here. */
export interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  /** None: the signature of a message is the only credential, and no header. */
  readonly security: readonly [];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentOperation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
}

export interface DocumentOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly object[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, object>>;
  readonly 'x-signed': boolean;
  readonly 'x-rate-limit': { readonly class: RateClass; readonly per_minute: number | null };
}

/** `/ipfs/:hash/*` -> `/ipfs/{hash}/{path}` */
export const pathOf = ({ path }: Operation) =>
  path.replace(/:([A-Za-z_]+)/g, '{$1}').replace(/\*$/, `{${REST_OF_PATH}}`);

export function tagOf({ tag, path }: Operation): string {
  return (
    tag ??
    path
      .replace(/^\/api\/v0\//, '/')
      .split('/')
      .filter(Boolean)[0] ??
    'node'
  );
}

export const methodsOf = ({ method, also = [] }: Operation) => [method, ...also];

/** `getFile` -> `headFile`, `callProgram` -> `postCallProgram`: an operation under a method beside its own. */
const idUnder = (method: string, id: string) =>
  `${method.toLowerCase()}${id.replace(/^get/, '').replace(/^./, (first) => first.toUpperCase())}`;

/** What is sent, by media type. */
export function contentOfBody(body: Body): Readonly<Record<string, object>> {
  switch (body.kind) {
    case 'json':
    case 'signed':
      return { 'application/json': body.schema };
    case 'bytes':
      return {
        [body.contentType]: {
          ...(body.contentType === 'application/json' ? {} : { type: 'string', format: 'binary' }),
          description: body.description,
        },
      };
    case 'form':
      return { 'multipart/form-data': body.fields };
    case 'stream':
      return body.content;
  }
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  200: 'success',
  422: 'a refused message of the network form',
  503: 'not available now; the body says why',
};

export const describeAnswer = (status: string, form: AnswerForm) =>
  isContent(form) ? form.description : (DESCRIPTIONS[status] ?? 'success');

export const contentOfAnswer = (form: AnswerForm): Readonly<Record<string, object>> =>
  isContent(form) ? form.content : { 'application/json': form };

/** Codes by status, each in the order of the catalogue. */
function groupErrors(operation: Operation): Map<number, ErrorCode[]> {
  const said = new Set(errorsOf(operation));
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => said.has(code));
  return Map.groupBy(codes, (code) => statusOf(code, operation));
}

/** Content with its schemas, and with what an example has of it where it is JSON. */
function mediaOf(content: Readonly<Record<string, object>>, components: Components, example?: unknown) {
  const media = Object.entries(content).map(([type, schema]) => {
    const isShown = example !== undefined && type === 'application/json';
    return [type, { schema: components.schema(schema), ...(isShown ? { example } : {}) }];
  });
  return Object.fromEntries(media) as Record<string, { readonly schema: object; readonly example?: unknown }>;
}

function documentOperation(
  id: string,
  operation: Operation,
  components: Components,
  perMinute: PerMinute,
): DocumentOperation {
  const { summary, body, answers, rateClass = 'unlimited', example } = operation;
  const [first] = Object.keys(answers);
  const documented = Object.entries(answers).map(([status, form]) => {
    const shown = status === first ? example?.answer : undefined;
    const content = mediaOf(contentOfAnswer(form), components, shown);
    return [
      status,
      {
        description: describeAnswer(status, form),
        ...(Object.keys(content).length === 0 ? {} : { content }),
      },
    ];
  });
  const refused = [...groupErrors(operation)].map(([status, codes]) => [status, components.refusal(codes)]);
  const parameters = shownParametersOf(operation).map((one) => components.parameter(one));
  return {
    operationId: id,
    tags: [tagOf(operation)],
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body
      ? {
          requestBody: {
            required: !body.isOptional,
            content: mediaOf(contentOfBody(body), components, example?.body),
          },
        }
      : {}),
    // An answer of its own stands in the place of a refusal with the same status.
    responses: { ...Object.fromEntries(refused), ...Object.fromEntries(documented) },
    'x-signed': rateClass === 'authenticated',
    'x-rate-limit': { class: rateClass, per_minute: perMinute[rateClass] ?? null },
    ...(example ? { 'x-example-request': `${operation.method} ${addressOf(operation, example)}` } : {}),
  };
}

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);
const withoutBody = ({ body: _, ...others }: Operation): Operation => others;

/** The OpenAPI 3.1 document of a table. @param perMinute the rates of its server, where it counts requests */
export function writeDocument(api: Api, info: ApiInfo, perMinute: PerMinute = {}): Document {
  const operations = Object.entries(api);
  const components = new Components(operations.flatMap(([, operation]) => shownParametersOf(operation)));
  const paths: Record<string, Record<string, DocumentOperation>> = {};
  for (const [id, operation] of operations) {
    const path = pathOf(operation);
    const methods = paths[path] ?? {};
    paths[path] = methods;
    for (const method of methodsOf(operation)) {
      const name = method === operation.method ? id : idUnder(method, id);
      const asked = BODILESS.has(method) ? withoutBody(operation) : operation;
      methods[method.toLowerCase()] = documentOperation(name, asked, components, perMinute);
    }
  }
  const { title, description } = info;
  return {
    openapi: '3.1.0',
    info: { title, version: VERSION, description },
    security: [],
    paths,
    components: components.all(),
  };
}
