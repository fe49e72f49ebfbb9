import assert from 'node:assert/strict';
import type { Document } from '@skerry/kit';
import { closeSchema } from '@skerry/kit/testing';
import type { ErrorBody } from '@skerry/protocol';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { operationsOf } from './operations.ts';

export interface Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly payload: string;
}

/** The media type of a `content` that an answer is documented by, or undefined. */
function documentedType(content: Readonly<Record<string, object>>, contentType: string): string | undefined {
  const bare = contentType.split(';', 1)[0]!.trim();
  return [bare, '*/*'].find((type) => Object.hasOwn(content, type));
}

/**
 * Checks answers against the document: the status is listed, the type is, and the body has the form that is shown, with no field that
 * the document does not name.
 */
export function createAnswerChecker(document: Document) {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  addFormats.default(ajv);
  ajv.addSchema(closeSchema(document) as object, 'api');
  const operations = new Map(operationsOf(document).map((one) => [one.name, one]));
  const compiled = new Map<string, ValidateFunction>();
  /** To compile one takes longer than the request whose answer it checks. */
  const validatorOf = (schema: object): ValidateFunction => {
    // References in it are to the document.
    const text = JSON.stringify(closeSchema(schema)).replaceAll('"#/', '"api#/');
    const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text) as object);
    compiled.set(text, validate);
    return validate;
  };
  return (operationName: string, answer: Answer): void => {
    const { method, responses } = operations.get(operationName)!;
    const status = String(answer.statusCode);
    const documented = responses[status];
    assert.ok(documented, `the status ${status} is not documented: ${answer.payload.slice(0, 300)}`);
    const contentType = String(answer.headers['content-type']);
    const type = documentedType(documented.content ?? {}, contentType);
    assert.ok(type, `${status} is not documented as ${contentType}`);
    // An answer to HEAD has the head of the answer to GET, and no body (RFC 9110, section 9.3.2).
    const hasBody = method !== 'head';
    if (!hasBody) assert.equal(answer.payload, '');
    if (hasBody && type === 'application/json') {
      const validate = validatorOf(documented.content![type]!.schema!);
      const isValid = validate(JSON.parse(answer.payload));
      assert.ok(isValid, `${status}: ${ajv.errorsText(validate.errors)}\n${answer.payload.slice(0, 600)}`);
    }
    assert.match(String(answer.headers['x-request-id']), /^[A-Za-z0-9._-]{1,64}$/);
    const { code } =
      hasBody && type === 'application/json' ? (JSON.parse(answer.payload) as Partial<ErrorBody>) : {};
    if (answer.statusCode === 429 || code === 'OVERLOADED' || code === 'DATABASE_UNAVAILABLE')
      assert.match(String(answer.headers['retry-after']), /^[1-9][0-9]*$/);
  };
}

/** The code of a refusal, or its status where the body is another. */
export function refusalOf(answer: Answer): string | number {
  if (answer.payload === '') return answer.statusCode;
  const body = JSON.parse(answer.payload) as Partial<ErrorBody>;
  // How a message of the network form is refused is a body of its own.
  return 'message_status' in body ? answer.statusCode : (body.code ?? answer.statusCode);
}
