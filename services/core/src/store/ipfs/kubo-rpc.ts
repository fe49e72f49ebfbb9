import { Slots } from '@skerry/kit';
import { AppError, fieldsOf } from '@skerry/protocol';
import { readUpTo } from './gateways.ts';
import { watchIdle } from './idle.ts';
import { IPFS_LIMITS } from './limits.ts';

export interface KuboSettings {
  /** Such as http://127.0.0.1:5001. */
  readonly url: string;
  /** The value of the `Authorization` header, where the daemon asks for one. */
  readonly authorization: string | undefined;
  /** How long the daemon may be silent. */
  readonly timeoutMs: number;
}

export interface KuboCall {
  readonly command: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body?: { readonly contentType: string; readonly chunks: AsyncIterable<Uint8Array> };
  readonly signal: AbortSignal;
}

const WORDS_MAX = 200;

/** What a daemon's refusal means: its codes say nothing, its sentences do. */
function classifyKuboError(status: number, sentence: string): AppError {
  const words = sentence.slice(0, WORDS_MAX);
  if (/no space left|disk (is )?full|quota|storage ?max|datastore is full/i.test(sentence))
    return new AppError('STORAGE_FULL', `the IPFS daemon has no space: ${words}`);
  if (/deadline exceeded|timed? ?out|request canceled/i.test(sentence))
    return new AppError('IPFS_TIMEOUT', `the IPFS daemon found nothing in time: ${words}`);
  if (/not pinned or pinned indirectly|not pinned/i.test(sentence))
    return new AppError('CID_NOT_FOUND', 'the IPFS daemon has no such pin');
  if (/not found|could not find|no providers/i.test(sentence))
    return new AppError('CID_NOT_FOUND', `the IPFS daemon: ${words}`);
  return new AppError('IPFS_UNAVAILABLE', `the IPFS daemon returned ${status}: ${words}`);
}

async function readError(response: Response): Promise<AppError> {
  const body = (await readUpTo(response, IPFS_LIMITS.answerBytes).catch(() => undefined))?.toString() ?? '';
  let sentence = body;
  try {
    sentence = String(fieldsOf(JSON.parse(body)).Message ?? body);
  } catch {
    // Plain text.
  }
  return classifyKuboError(response.status, sentence);
}

/** Calls of a kubo daemon (kubo documentation, "RPC API v0"): bounded in number, and each ends when the daemon is silent. */
export class KuboRpc {
  readonly #settings: KuboSettings;
  readonly #slots = new Slots(IPFS_LIMITS.slots, {
    waitingMax: IPFS_LIMITS.waiting,
    waitMs: IPFS_LIMITS.slotWaitMs,
    refusal: 'too many IPFS requests are running',
  });

  constructor(settings: KuboSettings) {
    this.#settings = settings;
  }

  /** Throws what `classifyKuboError` gives, IPFS_TIMEOUT, OVERLOADED. */
  async call<T>(call: KuboCall, read: (response: Response, note: () => void) => Promise<T>): Promise<T> {
    const { url, authorization, timeoutMs } = this.#settings;
    using _slot = await this.#slots.take();
    using idle = watchIdle('the IPFS daemon', timeoutMs);
    const signal = AbortSignal.any([call.signal, idle.signal]);
    const { body } = call;
    let failed: { error: unknown } | undefined;
    const sent = body && {
      body: noting(body.chunks, idle.note, (error) => {
        failed = { error };
      }),
      duplex: 'half',
    };
    try {
      const response = await fetch(
        `${url.replace(/\/+$/, '')}/api/v0/${call.command}?${new URLSearchParams(call.query)}`,
        {
          method: 'POST',
          headers: {
            ...(authorization === undefined ? {} : { authorization }),
            ...(body ? { 'content-type': body.contentType } : {}),
          },
          redirect: 'error',
          signal,
          ...sent,
        } as unknown as RequestInit,
      );
      idle.note();
      if (!response.ok) throw await readError(response);
      return await read(response, idle.note);
    } catch (error) {
      // What the sender of a file did wrong is no fault of the daemon.
      if (failed) throw failed.error;
      if (error instanceof AppError || call.signal.aborted) throw error;
      if (idle.signal.aborted) throw idle.signal.reason;
      throw new AppError('IPFS_UNAVAILABLE', 'the IPFS daemon cannot be reached', { cause: error });
    }
  }

  /** One JSON object a line, the last one first to be of use; progress notes keep the call alive. */
  lines(call: KuboCall): Promise<Record<string, unknown>[]> {
    return this.call(call, readLines);
  }
}

async function* noting(
  chunks: AsyncIterable<Uint8Array>,
  note: () => void,
  fail: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of chunks) {
      note();
      yield chunk;
      note();
    }
  } catch (error) {
    fail(error);
    throw error;
  }
}

/** The objects that are no progress notes. Throws what an error within the answer says. */
async function readLines(response: Response, note: () => void): Promise<Record<string, unknown>[]> {
  const found: Record<string, unknown>[] = [];
  let rest = '';
  let size = 0;
  const take = (line: string) => {
    if (line.trim() === '') return;
    const object = parseLine(line);
    if (typeof object.Message === 'string' && object.Type === 'error')
      throw classifyKuboError(200, object.Message);
    if (object.Hash === undefined && object.Pins === undefined) return;
    size += line.length;
    if (size > IPFS_LIMITS.answerBytes)
      throw new AppError('IPFS_UNAVAILABLE', 'the answer of the IPFS daemon has no end');
    found.push(object);
  };
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    note();
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop()!;
    if (rest.length > IPFS_LIMITS.answerBytes)
      throw new AppError('IPFS_UNAVAILABLE', 'the answer of the IPFS daemon has no end');
    for (const line of lines) take(line);
  }
  take(rest);
  return found;
}

function parseLine(line: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // Told below.
  }
  throw new AppError('IPFS_UNAVAILABLE', 'the IPFS daemon answers something else than kubo does');
}
