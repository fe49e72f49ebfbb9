import type { JudgedMessageView } from '@skerry/protocol/api/core/messages';
import { AppError, fieldsOf, isCid, isItemHash64, itemHashOf, sha256Hex } from '@skerry/protocol/forms';

type Told = Pick<JudgedMessageView, 'chain' | 'sender' | 'signed_text' | 'message'>;

/** Of text that its hash proves, so that whoever made the hash made the text. */
function readFields(text: string) {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    return {};
  }
}

const nameIn = (content: unknown): string | undefined => {
  const { item_hash: name } = fieldsOf(content);
  return typeof name === 'string' && (isItemHash64(name) || isCid(name)) ? name : undefined;
};

/**
 * The SHA-256 or CID of the file that the STORE message with this hash keeps, from the text that the hash is of; undefined where what
 * a node tells of it is not that text.
 */
function storedFileOf(hash: string, { chain, sender, signed_text: text, message }: Told): string | undefined {
  if (text !== null && itemHashOf(chain, sender, text) === hash) {
    // Who uploads a file signs nothing but its hash.
    if (isItemHash64(text)) return text;
    const { type, content } = readFields(text);
    return type === 'STORE' ? nameIn(content) : undefined;
  }
  const inner = message?.item_content;
  return typeof inner === 'string' && sha256Hex(inner) === hash ? nameIn(readFields(inner)) : undefined;
}

/** A file on its way. */
export interface OpenFile {
  /** The SHA-256 or CID that its bytes must have: the caller checks it. */
  readonly hash: string;
  readonly response: Response;
}

const FILE_TAG = /^"([0-9A-Za-z]{46,64})"$/;

/**
 * What the bytes of a response must have for a hash, where the file that was asked for is what they are: the hash itself, or that of
 * the file which the STORE message of that hash keeps. Ends the response where it fails.
 */
export async function hashOfFile(
  core: { getMessage(hash: string): Promise<Told> },
  asked: string,
  { headers, body }: Response,
): Promise<string> {
  if (FILE_TAG.exec(headers.get('etag') ?? '')?.[1] === asked) return asked;
  try {
    return storedFileOf(asked, await core.getMessage(asked)) ?? asked;
  } catch (error) {
    if (error instanceof AppError && error.kind === 'missing') return asked;
    // One that broke off cannot be ended, which is not what failed.
    await body?.cancel().catch(() => {});
    throw error;
  }
}
