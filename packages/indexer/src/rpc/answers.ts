import { classifyError, type JsonRpcError, RpcError } from './failures.ts';

interface Answer {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: JsonRpcError;
}

/**
 * Commas and brackets of one answer. What parsing takes follows from the number of values, not of bytes: 128 MiB of empty objects took
 * 46 seconds of the thread. A log of 600 bytes has twelve, so that the largest answers that are needed have a tenth of this.
 */
const MARKS_MAX = 2_000_000;
const [COMMA, BRACKET, BRACE] = [0x2c, 0x5b, 0x7b];

/** Each call's result or failure, in the order of the calls. Throws RpcError where the body is no answer to them at all. */
export function readAnswers(body: Uint8Array, calls: number): (unknown | RpcError)[] {
  const parsed = parseJson(body);
  if (!Array.isArray(parsed)) {
    const answer = asAnswer(parsed);
    if (calls === 1) return [resultOf(answer)];
    // A batch that was refused as a whole.
    throw answer.error
      ? new RpcError(classifyError(answer.error))
      : new RpcError({ kind: 'malformed', reason: 'one answer to a batch' });
  }
  const results = new Array<unknown>(calls).fill(undefined);
  for (const one of parsed) {
    const answer = asAnswer(one);
    const { id } = answer;
    if (typeof id === 'number' && id >= 0 && id < calls) results[id] = resultOf(answer);
    else if (answer.error) throw new RpcError(classifyError(answer.error));
  }
  return results.map((result) =>
    result === undefined ? new RpcError({ kind: 'malformed', reason: 'a call was not answered' }) : result,
  );
}

/** The same, where one failure spoils all. */
export function readResults(body: Uint8Array, calls: number): unknown[] {
  const answers = readAnswers(body, calls);
  for (const answer of answers) if (answer instanceof RpcError) throw answer;
  return answers;
}

const utf8 = new TextDecoder('utf-8');

/** Also those in texts, of which answers have few. */
function hasTooMany(body: Uint8Array): boolean {
  if (body.length <= MARKS_MAX) return false;
  let marks = 0;
  for (let at = 0; at < body.length && marks <= MARKS_MAX; at++) {
    const byte = body[at];
    if (byte === COMMA || byte === BRACKET || byte === BRACE) marks++;
  }
  return marks > MARKS_MAX;
}

function parseJson(body: Uint8Array): unknown {
  if (hasTooMany(body)) throw new RpcError({ kind: 'range_too_large', isSent: true });
  try {
    return JSON.parse(utf8.decode(body));
  } catch {
    throw new RpcError({ kind: 'malformed', reason: 'the answer is not JSON' });
  }
}

function asAnswer(value: unknown): Answer {
  if (typeof value !== 'object' || value === null)
    throw new RpcError({ kind: 'malformed', reason: 'the answer is not an object' });
  return value;
}

function resultOf({ result, error }: Answer): unknown | RpcError {
  if (error !== undefined && error !== null) return new RpcError(classifyError(error));
  return result === undefined
    ? new RpcError({ kind: 'malformed', reason: 'neither result nor error' })
    : result;
}
