import { UPLOADS_API, type UploadView } from '@skerry/protocol/api/core/storage';
import { AppError } from '@skerry/protocol/forms';
import { call, urlOfCall } from '../call.ts';
import type { CoreClient } from '../core-client.ts';
import { pauseAfter } from '../pause.ts';
import type { AskedSigner } from '../signer.ts';
import { checkStored, uploadHashOf } from './upload-hash.ts';

/** A smaller file is sent as a whole: what breaks off is soon sent again. */
export const PARTS_FROM_BYTES = 1024 ** 2;
/** A file that breaks off so often without getting on is left to its sender. */
const IDLE_TRIES_MAX = 10;
/** It gets on where the node has so much more of it: so many mebibytes as it has, so often it may break off beside. */
const STEP_BYTES = 1024 ** 2;
/**
 * How often a node is asked again that still reads a part whose connection broke, or has no place for it, with a pause before each. It may
 * take ten seconds to say so, each time.
 */
const BUSY_PAUSES_MS = [200, 1_000, 2_000, 4_000, 8_000, 16_000];
const PART_TIMEOUT_MS = 3_600_000;
const AGAIN = 'send the same file again: it goes on where the node is';
const PART_TYPE = 'application/octet-stream';

/** What was hashed and signed is not there any more. @param cause what reading the file failed with */
export const changedFile = (cause: unknown): AppError =>
  new AppError('INVALID_PARAMETERS', 'the file was changed or removed while it was read: send a copy of it', {
    cause,
  });

/** Sends the rest of a file to an address, and gives the node's answer. Throws UPSTREAM_UNAVAILABLE where the connection breaks. */
export type SendRest = (url: string, rest: Blob, offset: number) => Promise<UploadView>;

export interface PartsOptions {
  readonly channel?: string;
  readonly tags?: readonly string[];
  /** In the place of `fetch`, which does not tell how much it has sent. */
  readonly send?: SendRest;
  /** How many bytes the node has, before each part, also where it is sent again. */
  readonly onPart?: (receivedBytes: number) => void;
  /** Told where the node has no room for a part now, which is sent again after so many milliseconds. */
  readonly onBusy?: (pauseMs: number) => void;
}

/** A file on its way, by the SHA-256 that its owner signed. */
interface Going extends PartsOptions {
  readonly core: CoreClient<AskedSigner>;
  readonly file: Blob;
  readonly hash: string;
  readonly signature: string;
}

type Place = Pick<UploadView, 'received' | 'item_hash'>;

const codeOf = (error: unknown) => (error instanceof AppError ? error.code : undefined);

/** The STORE message of this upload if the node has it: all had arrived, and only the answer was lost. */
async function findKept({ core, hash }: Pick<Going, 'core' | 'hash'>): Promise<string | undefined> {
  const itemHash = uploadHashOf(core.signer, hash);
  try {
    return (await core.getMessageStatus(itemHash)).status === 'processed' ? itemHash : undefined;
  } catch (error) {
    if (codeOf(error) === 'MESSAGE_NOT_FOUND') return undefined;
    throw error;
  }
}

async function findPlace({ core, file, hash }: Pick<Going, 'core' | 'file' | 'hash'>): Promise<Place> {
  const kept = await findKept({ core, hash });
  return kept === undefined ? core.getUpload(hash, file.size) : { received: file.size, item_hash: kept };
}

async function sendRest(going: Going, offset: number): Promise<UploadView> {
  const { core, file, hash, signature, channel, tags = [], send } = going;
  const query = {
    ...{ address: core.signer.address, signature, size: file.size, offset },
    ...(file.type === '' ? {} : { content_type: file.type }),
    ...(channel === undefined ? {} : { channel }),
    ...(tags.length === 0 ? {} : { tags: tags.join(',') }),
  };
  const input = { params: { hash }, query };
  const rest = file.slice(offset, file.size, PART_TYPE);
  if (send) return send(urlOfCall(core.url, UPLOADS_API.sendPart, input), rest, offset);
  const options = { ...core.options, timeoutMs: PART_TIMEOUT_MS };
  return call(core.url, UPLOADS_API.sendPart, { ...input, body: rest }, options);
}

/** The same of a node that has no room now, or still reads an earlier part until it notices that nobody sends it any more. */
async function sendToBusy(going: Going, offset: number): Promise<UploadView> {
  for (const ms of BUSY_PAUSES_MS) {
    try {
      return await sendRest(going, offset);
    } catch (error) {
      if (codeOf(error) !== 'OVERLOADED') throw error;
      going.onBusy?.(ms);
      await pauseAfter(error, ms, going.core.options.signal);
      going.onPart?.(offset);
    }
  }
  return sendRest(going, offset);
}

/** A part may break off because of the file itself, of which `fetch` tells no other reason. Throws where it cannot be read from there on. */
const checkReadable = (file: Blob, offset: number) =>
  file
    .slice(offset, offset + 1)
    .arrayBuffer()
    .catch((error: unknown) => {
      throw changedFile(error);
    });

/** Where the node is after a part, also after one that broke off. */
async function sendPart(going: Going, offset: number): Promise<Place & { readonly isLost?: true }> {
  try {
    return await sendToBusy(going, offset);
  } catch (error) {
    if (codeOf(error) !== 'UPSTREAM_UNAVAILABLE') throw error;
    await checkReadable(going.file, offset);
    const place = await findPlace(going).catch(() => undefined);
    if (place) return { ...place, isLost: true };
    const { message } = error as AppError;
    throw new AppError('UPSTREAM_UNAVAILABLE', `${message}; ${AGAIN}`, { cause: error });
  }
}

/**
 * A node without parts, or without room for one more file in parts, may take the file as a whole all the same: on its disk, parts need
 * twice the room, since they are put together in a second place.
 */
const isForWhole = (error: unknown, offset: number) =>
  offset === 0 &&
  ['RATE_LIMITED', 'OVERLOADED', 'ROUTE_NOT_FOUND', 'STORAGE_FULL'].includes(codeOf(error) ?? '');

/**
 * Sends what a node does not have yet of a file. What arrives before a connection breaks stays there, for a day: this goes on behind
 * it by itself while the node answers, and later where it is called again (docs/storage.md).
 * @param hash the SHA-256 of the file, which the signer of `core` signs
 * @returns the item hash of the STORE message; undefined where the node takes the file only as a whole (`CoreClient.storeFile`)
 * @throws AppError UPSTREAM_UNAVAILABLE where the node was lost or takes no more; INVALID_PARAMETERS where the file was changed
 *   meanwhile; HASH_MISMATCH where the node names another message than the one that was signed; what the node refuses with
 */
export async function storeInParts(
  core: CoreClient<AskedSigner>,
  file: Blob,
  hash: string,
  options: PartsOptions = {},
): Promise<string | undefined> {
  const keptBy = (item_hash: string) =>
    checkStored(core.signer, hash, { item_hash, file_hash: hash }).item_hash;
  let [offset, received, tries, idleTries] = [0, 0, 0, 0];
  try {
    const place = await findPlace({ core, file, hash });
    if (place.item_hash !== null) return keptBy(place.item_hash);
    ({ received } = place);
    const going = { ...options, core, file, hash, signature: await core.signer.sign(hash) };
    let reached = received;
    for (let isMoving = true; isMoving && idleTries < IDLE_TRIES_MAX; tries++) {
      offset = received;
      options.onPart?.(offset);
      const told = await sendPart(going, offset);
      if (told.item_hash !== null) return keptBy(told.item_hash);
      ({ received } = told);
      isMoving = received > offset || told.isLost === true;
      // A node may say what it likes: it never has more than all.
      const isFurther = Math.min(received, file.size) >= reached + STEP_BYTES;
      idleTries = isFurther ? 0 : idleTries + 1;
      if (isFurther) reached = received;
    }
  } catch (error) {
    if (!isForWhole(error, offset)) throw error;
    await checkReadable(file, offset);
    return undefined;
  }
  throw new AppError(
    'UPSTREAM_UNAVAILABLE',
    `the node has ${received} of ${file.size} bytes after ${tries} ${tries === 1 ? 'try' : 'tries'}; ${AGAIN}`,
  );
}
