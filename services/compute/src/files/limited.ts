import { AppError } from '@skerry/protocol';

export const tooLarge = (limitBytes: number, what: string): AppError =>
  new AppError('FILE_TOO_LARGE', `${what} is limited to ${limitBytes} bytes on this node`);

/** The same bytes. Throws FILE_TOO_LARGE once there are more than that. @param what names it in a sentence */
export async function* limited(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  limitBytes: number,
  what: string,
): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  for await (const chunk of source) {
    sizeBytes += chunk.length;
    if (sizeBytes > limitBytes) throw tooLarge(limitBytes, what);
    yield chunk;
  }
}
