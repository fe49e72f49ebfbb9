import { AppError } from '@skerry/protocol/forms';
import { causeOf } from './cause.ts';

/** More text than any service answers with at once. */
export const TEXT_BYTES_MAX = 256 * 1024 ** 2;

/** An answer whose body is a stream. */
type Streamed = Pick<Response, 'url' | 'body'>;

/** What comes next of an answer. Throws UPSTREAM_UNAVAILABLE where it breaks off, or takes too long; who ended it is told so. */
async function readNext(url: string, reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read();
  } catch (error) {
    const { name } = error as Error;
    if (name === 'AbortError') throw error;
    const why =
      name === 'TimeoutError'
        ? 'was not done with its answer in the time that it was given'
        : `broke its answer off (${causeOf(error)})`;
    throw new AppError('UPSTREAM_UNAVAILABLE', `${url} ${why}`, { cause: error });
  }
}

async function gather({ url, body }: Streamed, limitBytes: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  if (!body) return chunks;
  let size = 0;
  // Not every browser can iterate over a stream.
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await readNext(url, reader);
    if (done) return chunks;
    size += value.length;
    if (size > limitBytes) {
      await reader.cancel().catch(() => {});
      throw new AppError('UNEXPECTED_ANSWER', `${url} returned more than ${limitBytes} bytes`);
    }
    chunks.push(value);
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
