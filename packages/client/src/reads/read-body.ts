import { AppError } from '@skerry/protocol/forms';
import { causeOf } from './cause.ts';
import { chunksOf } from './chunks.ts';

/** More text than any service answers with at once. */
export const TEXT_BYTES_MAX = 256 * 1024 ** 2;

/** An answer whose body is a stream. */
type Streamed = Pick<Response, 'url' | 'body'>;

/**
 * That a service did not answer in its time, which `late` in the details tells from one that nobody is at the place of. It has no cause: a
 * time limit has nothing more to say, and logs write a cause out.
 */
export const lateError = (message: string) =>
  new AppError('UPSTREAM_UNAVAILABLE', message, { details: { late: true } });

/** UPSTREAM_UNAVAILABLE where an answer broke off, or took too long; who ended it is told so. */
export function failureOf(url: string, error: unknown): unknown {
  const { name } = error as Error;
  if (error instanceof AppError || name === 'AbortError') return error;
  if (name === 'TimeoutError')
    return lateError(`${url} was not done with its answer in the time that it was given`);
  return new AppError('UPSTREAM_UNAVAILABLE', `${url} broke its answer off (${causeOf(error)})`, {
    cause: error,
  });
}

async function gather({ url, body }: Streamed, limitBytes: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  if (!body) return chunks;
  let size = 0;
  try {
    for await (const chunk of chunksOf(body)) {
      size += chunk.length;
      if (size > limitBytes)
        throw new AppError('UNEXPECTED_ANSWER', `${url} returned more than ${limitBytes} bytes`);
      chunks.push(chunk);
    }
    return chunks;
  } catch (error) {
    throw failureOf(url, error);
  }
}

/** The bytes of an answer. Throws UNEXPECTED_ANSWER where there are more: those are not read. */
export async function readBytes(answer: Streamed, limitBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks = await gather(answer, limitBytes);
  return new Uint8Array(await new Blob(chunks as BlobPart[]).arrayBuffer());
}

/** An answer that is text, streamed or read already. Throws UNEXPECTED_ANSWER where it is longer. */
export async function readText(
  answer: Pick<Response, 'url' | 'text'> & Partial<Streamed>,
  limitBytes = TEXT_BYTES_MAX,
): Promise<string> {
  const { url, body } = answer;
  if (body === undefined) return answer.text();
  return new TextDecoder().decode(await readBytes({ url, body }, limitBytes));
}
