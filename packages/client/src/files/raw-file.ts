import { STORAGE_API } from '@skerry/protocol/api/core/storage';
import { AppError } from '@skerry/protocol/forms';
import { type CallOptions, callRaw } from '../call.ts';

/** A node answers a condition by itself, and sends nobody elsewhere for it. No file has this tag. */
const BY_ITSELF = { 'if-none-match': '"elsewhere"' };

/**
 * The bytes of a file, which the caller checks: from where the node sends there, or from the node itself where it would send to what is
 * not to be asked, such as an object store that speaks plain `http`.
 * @param firstByte where to begin; a node that does so answers 206, any other sends all of it
 */
export async function askForFile(
  coreUrl: string,
  hash: string,
  options: Omit<CallOptions, 'headers' | 'isKnownByHash'>,
  firstByte = 0,
): Promise<Response> {
  const part: Readonly<Record<string, string>> = firstByte === 0 ? {} : { range: `bytes=${firstByte}-` };
  const ask = ({ headers, ...more }: CallOptions) => {
    const asked = { ...options, ...more, headers: { ...part, ...headers } };
    return callRaw(coreUrl, STORAGE_API.getRawFile, { params: { hash } }, asked);
  };
  try {
    return await ask({ isKnownByHash: true });
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'UNEXPECTED_ANSWER')) throw error;
    return ask({ headers: BY_ITSELF });
  }
}
