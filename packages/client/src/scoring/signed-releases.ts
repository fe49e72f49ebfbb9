import {
  AppError,
  fieldsOf,
  ownerOf,
  parseVersionTable,
  VERSIONS_KEY,
  type VerifiedMessage,
  type VersionTable,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { call } from '../call.ts';
import { readPages } from '../pages.ts';
import { proveDelegation } from '../proofs/delegation.ts';
import { saysNothing } from '../reads/says-nothing.ts';
import { type ListedMessage, type SignedMessageSource, verifyListed } from '../signed-message.ts';

const MESSAGES_PER_PAGE = 100;
/** Of the newest; each is a signature to check. */
const MESSAGES_MAX = 1_000;

type Releases = VersionTable[string];

/** Throws UNEXPECTED_ANSWER where neither the owner nor whom they permit it signed a message as an element of the table. */
async function proveElement(
  source: SignedMessageSource,
  row: ListedMessage,
  owner: string,
): Promise<VerifiedMessage> {
  const refuse = (why: string, cause?: unknown) =>
    new AppError(
      'UNEXPECTED_ANSWER',
      `${source.coreUrl} lists ${row.item_hash} as a change of the version table of ${owner}: ${why}`,
      { cause },
    );
  const message = await verifyListed(source, row).catch((error: unknown) => {
    if (!(error instanceof AppError) || saysNothing(error)) throw error;
    throw refuse(error.message, error);
  });
  const { itemHash, sender, type, content } = message;
  const { key, address } = fieldsOf(content);
  const isElement = type === 'AGGREGATE' && key === VERSIONS_KEY && ownerOf(sender, { address }) === owner;
  if (itemHash !== row.item_hash || !isElement) throw refuse('it is none');
  const delegation = await proveDelegation(source, message);
  if (delegation?.refusal) throw refuse(`${message.sender} is not permitted to sign it`);
  return message;
}

/**
 * The releases of a software in an owner's version table, by the messages that were signed for it; undefined where none tells of any. It
 * does not show that the core node lists the latest one. Throws UNEXPECTED_ANSWER for what was not signed so.
 */
export async function readSignedReleases(
  source: SignedMessageSource,
  owner: string,
  software: string,
): Promise<Releases | undefined> {
  const { coreUrl, signal } = source;
  const asked = { msgTypes: 'AGGREGATE', owners: owner, contentKeys: VERSIONS_KEY } as const;
  const filter = { ...asked, pagination: MESSAGES_PER_PAGE, bodies: 'shared' } as const;
  const read = (place: object) =>
    call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, { query: { ...filter, ...place } }, { signal });
  let latest: VerifiedMessage | undefined;
  let count = 0;
  for await (const { messages } of readPages(read)) {
    for (const row of messages) {
      const message = await proveElement(source, row, owner);
      const isAbout = Object.hasOwn(fieldsOf(fieldsOf(message.content).content), software);
      if (isAbout && (!latest || isLater(message, latest))) latest = message;
    }
    count += messages.length;
    if (latest !== undefined || count >= MESSAGES_MAX) break;
  }
  if (!latest) return undefined;
  const releases = fieldsOf(fieldsOf(latest.content).content)[software];
  return parseVersionTable({ [software]: releases })[software];
}

/** A field of an aggregate belongs to the latest element that has it. */
const isLater = (one: VerifiedMessage, other: VerifiedMessage) =>
  one.time === other.time ? one.itemHash > other.itemHash : one.time > other.time;
