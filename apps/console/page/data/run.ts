import { fields, maybe, text } from '../pure/read.ts';
import { readUpTo } from '../pure/read-body.ts';
import { ANSWER_BYTES_MAX } from './ask.ts';
import { AskFailure } from './failure.ts';

/** What a run of a program came to. */
export interface Run {
  readonly status: number;
  readonly type: string;
  readonly bytes: number;
  /** Undefined where it is no text. */
  readonly text: string | undefined;
  /** How its sandbox came about, by the node's word; null where it does not say. */
  readonly start: string | null;
  /** From the question to the whole answer, as this tab saw it. */
  readonly elapsedMs: number;
}

/** Where the program failed, and what it said. */
export class RunFailure extends AskFailure {
  readonly traceback: string | undefined;

  constructor(code: string, message: string, traceback: string | undefined) {
    super(code, message);
    this.traceback = traceback;
  }
}

/** The longest that a program may take, and some time for its start. */
const TIMEOUT_MS = 3_720_000;

const readRefusal = fields({ error: text, code: text, details: maybe(fields({ traceback: maybe(text) })) });

function refusalOf(body: string, status: number): RunFailure {
  try {
    const { error, code, details } = readRefusal(JSON.parse(body), 'the refusal');
    return new RunFailure(code, error, details?.traceback ?? undefined);
  } catch {
    return new RunFailure('UPSTREAM_UNAVAILABLE', `the core node returned status ${status}`, undefined);
  }
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

interface Answered extends Pick<Response, 'status' | 'headers'> {
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A whole answer, which is a stranger's to its last byte. Throws RunFailure. */
async function fetchAnswer(url: string, signal: AbortSignal, body: string): Promise<Answered> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let begun: Response | undefined;
  try {
    begun = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.any([signal, timeout]),
      credentials: 'omit',
    });
    const { status, headers } = begun;
    return { status, headers, bytes: await readUpTo(begun, ANSWER_BYTES_MAX) };
  } catch {
    signal.throwIfAborted();
    const what = begun && !timeout.aborted ? 'broke its answer off' : 'does not answer';
    throw new RunFailure('UPSTREAM_UNAVAILABLE', `the core node ${what}`, undefined);
  }
}

/** Runs a program on a node of the network. Throws RunFailure where it did not answer. */
export async function runProgram(
  coreUrl: string,
  hash: string,
  variables: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<Run> {
  const startMs = performance.now();
  const url = `${coreUrl}/api/v0/run/${encodeURIComponent(hash)}`;
  const { status, headers, bytes } = await fetchAnswer(url, signal, JSON.stringify({ variables }));
  const elapsedMs = performance.now() - startMs;
  if (bytes.length > ANSWER_BYTES_MAX)
    throw new RunFailure('UNEXPECTED_ANSWER', 'the answer is larger than can be shown', undefined);
  const answer = decode(bytes);
  if (headers.get('net-program-outcome') !== 'answered') throw refusalOf(answer ?? '', status);
  return {
    status,
    type: headers.get('content-type') ?? '',
    bytes: bytes.length,
    text: answer,
    start: headers.get('net-program-start'),
    elapsedMs,
  };
}
