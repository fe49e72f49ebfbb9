import { buffer } from 'node:stream/consumers';
import type { CoreClient } from '@skerry/client';
import {
  AppError,
  fieldsOf,
  type ItemType,
  isCid,
  isItemHash64,
  itemHashOf,
  LIMITS,
  parseContentFile,
  scanJsonObject,
  sha256Hex,
} from '@skerry/protocol';
import type { JudgedMessageView, NetworkMessageView } from '@skerry/protocol/api/core/messages';
import type { CidSource } from './cid-file.ts';
import { limited } from './limited.ts';
import { openNetworkFile } from './network-file.ts';

/** Where messages and files come from. Nothing that it sends is believed. */
export type MessageSource = CidSource & Pick<CoreClient, 'getMessage'>;

const mismatch = (hash: string) =>
  new AppError('HASH_MISMATCH', `the core node sent the wrong bytes for ${hash}`);

/** A content that is a file: what it leaves out follows from its message. */
async function readContentFile(
  core: MessageSource,
  hash: string,
  itemType: ItemType,
  { sender: signedSender, time }: NetworkMessageView,
): Promise<unknown> {
  const { bytes } = await openNetworkFile(core, hash);
  const file = await buffer(limited(bytes, LIMITS.contentFileBytes, 'the content of a message'));
  return parseContentFile(file, { itemType, itemHash: hash, signedSender, time }, Date.now() / 1000);
}

/** The signed content of a message, once it is known to have the hash that was asked for. */
export async function readContent(
  core: MessageSource,
  hash: string,
  answer: JudgedMessageView,
): Promise<{ content: unknown; isNetworkForm: boolean }> {
  const { chain, sender, signed_text: text, message } = answer;
  if (text !== null && itemHashOf(chain, sender, text) === hash)
    return {
      content: fieldsOf(scanJsonObject(Buffer.from(text)).value).content,
      isNetworkForm: false,
    };
  const itemType = message?.item_type;
  if (itemType === 'storage' || itemType === 'ipfs')
    return { content: await readContentFile(core, hash, itemType, message!), isNetworkForm: true };
  const inner = message?.item_content ?? null;
  if (inner === null || sha256Hex(inner) !== hash) throw mismatch(hash);
  return { content: JSON.parse(inner) as unknown, isNetworkForm: true };
}

/** Reads one message, or undefined where the core node knows none. */
export async function findMessage(core: MessageSource, hash: string): Promise<JudgedMessageView | undefined> {
  try {
    return await core.getMessage(hash);
  } catch (error) {
    if (error instanceof AppError && error.code === 'MESSAGE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** The file that a STORE message keeps, from what its sender signed. */
async function fileOf(core: MessageSource, hash: string, answer: JudgedMessageView): Promise<unknown> {
  const { chain, sender, signed_text: text } = answer;
  // Who uploads a file signs nothing but its hash.
  if (text !== null && isItemHash64(text) && itemHashOf(chain, sender, text) === hash) return text;
  return fieldsOf((await readContent(core, hash, answer)).content).item_hash;
}

/**
 * The SHA-256 or CID of a file that is named by either, or by the STORE message that keeps it.
 *
 * @throws AppError HASH_MISMATCH, INVALID_HASH
 */
export async function resolveFile(core: MessageSource, ref: string): Promise<string> {
  const answer = isItemHash64(ref) ? await findMessage(core, ref) : undefined;
  const file = answer?.type === 'STORE' ? await fileOf(core, ref, answer) : ref;
  if (typeof file !== 'string' || !(isItemHash64(file) || isCid(file)))
    throw new AppError('INVALID_HASH', `${ref} does not name a file by SHA-256 or CID`);
  return file;
}
