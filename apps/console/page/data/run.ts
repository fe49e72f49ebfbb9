import { fields, maybe, text } from '../pure/read.ts';
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

/** Runs a program on a node of the network. Throws RunFailure where it did not answer. */
export async function runProgram(
  coreUrl: string,
  hash: string,
  variables: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<Run> {
  const startMs = performance.now();
  const response = await fetch(`${coreUrl}/api/v0/run/${encodeURIComponent(hash)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ variables }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    credentials: 'omit',
  }).catch(() => {
    throw new RunFailure('UPSTREAM_UNAVAILABLE', 'the core node does not answer', undefined);
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const elapsedMs = performance.now() - startMs;
  const answer = decode(bytes);
  if (response.headers.get('net-program-outcome') !== 'answered')
    throw refusalOf(answer ?? '', response.status);
  return {
    status: response.status,
    type: response.headers.get('content-type') ?? '',
    bytes: bytes.length,
    text: answer,
    start: response.headers.get('net-program-start'),
    elapsedMs,
  };
}
