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
  ownerOf,
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
  const limit = { bytes: LIMITS.contentFileBytes, what: 'the content of a message' };
  const { bytes } = await openNetworkFile(core, hash, limit);
  const file = await buffer(limited(bytes, limit.bytes, limit.what));
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

/** Where later versions of files are found. */
export type VersionSource = MessageSource & Pick<CoreClient, 'findNewestVersion'>;

/** A file of the network, as a message names it. */
export interface FileRef {
  /** A SHA-256, a CID, or the STORE message that keeps it. */
  readonly ref: string;
  /** Whether the newest version by the same owner takes its place. */
  readonly useLatest: boolean;
}

/** What a STORE message keeps, from what its sender signed. Who uploads a file signs nothing but its hash. */
async function readStore(core: MessageSource, hash: string, answer: JudgedMessageView) {
  const { chain, sender, signed_text: text } = answer;
  if (text !== null && isItemHash64(text) && itemHashOf(chain, sender, text) === hash)
    return { file: text, owner: sender, ref: undefined };
  const { item_hash: file, ...content } = fieldsOf((await readContent(core, hash, answer)).content);
  return { file, owner: ownerOf(sender, content), ref: content.ref };
}

/**
 * The newest version of the file that a STORE message began: the message, and what it keeps. Which one is newest is the
 * core node's word; that it is one of the same owner is seen.
 */
async function findNewest(core: VersionSource, hash: string, owner: string) {
  const newest = await core.findNewestVersion(hash, owner);
  const answer = newest === undefined ? undefined : await findMessage(core, newest);
  if (newest === undefined || answer?.type !== 'STORE' || answer.status !== 'processed') return undefined;
  const store = await readStore(core, newest, answer);
  return store.owner === owner && store.ref === hash ? { hash: newest, file: store.file } : undefined;
}

/** The message that keeps a file, where one is named, and the file's own name, in the version that is wanted. */
async function resolveVersion(core: VersionSource, { ref, useLatest }: FileRef) {
  const answer = isItemHash64(ref) ? await findMessage(core, ref) : undefined;
  if (answer?.type !== 'STORE') return { hash: ref, file: ref };
  const { file, owner } = await readStore(core, ref, answer);
  const newest = useLatest ? await findNewest(core, ref, owner) : undefined;
  return newest ?? { hash: ref, file };
}

/** The message that keeps the version of a file that is wanted; its name itself where no message is named. */
export async function resolveMessage(core: VersionSource, ref: FileRef): Promise<string> {
  return (await resolveVersion(core, ref)).hash;
}

/**
 * The SHA-256 or CID of a file that is named by either, or by the STORE message that keeps it.
 *
 * @throws AppError HASH_MISMATCH, INVALID_HASH
 */
export async function resolveFile(core: VersionSource, ref: FileRef): Promise<string> {
  const { file } = await resolveVersion(core, ref);
  if (typeof file !== 'string' || !(isItemHash64(file) || isCid(file)))
    throw new AppError('INVALID_HASH', `${ref.ref} does not name a file by SHA-256 or CID`);
  return file;
}
