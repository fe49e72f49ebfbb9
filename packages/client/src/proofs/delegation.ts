import {
  type Act,
  AppError,
  AUTHORIZATIONS,
  effectiveTime,
  fieldsOf,
  findRefusal,
  LIMITS,
  ownerOf,
  parseAuthorizations,
  type Refusal,
  SECURITY_KEY,
  type SecurityElement,
  securityAt,
  type VerifiedMessage,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { callRows } from '../call.ts';
import { readPages } from '../pages.ts';
import { saysNothing } from '../reads/says-nothing.ts';
import { type RefusedMessage, refusalOfRow } from '../scoring/published.ts';
import { type ListedMessage, type SignedMessageSource, verifyListed } from '../signed-message.ts';

/** Whether somebody may sign for the owner of a message, by what the owner signed. */
export interface Delegation {
  readonly owner: string;
  /** The owner's message that held when the message was made; null where there was none. */
  readonly grantedBy: string | null;
  /** Undefined where it permits the message. */
  readonly refusal: Refusal | undefined;
  /** Messages of the owner's aggregate that were checked here. */
  readonly verified: number;
  readonly refused: readonly RefusedMessage[];
  /** Whether there are older ones, which were not read: where nothing held, one of them may have. */
  readonly isCut: boolean;
}

const MESSAGES_PER_PAGE = 100;
/** Nobody writes so many: each is a signature to check. */
const MESSAGES_MAX = 500;

/** What one message of the owner permits; undefined where it says nothing of it. Throws AppError for what is not the owner's. */
async function readElement(
  source: SignedMessageSource,
  row: ListedMessage,
  owner: string,
): Promise<SecurityElement | undefined> {
  const message = await verifyListed(source, row);
  const { itemHash, sender, type, content } = message;
  if (itemHash !== row.item_hash)
    throw new AppError('HASH_MISMATCH', `the core node returned another message for ${row.item_hash}`);
  const { key, content: fields, address } = fieldsOf(content);
  if (
    type !== 'AGGREGATE' ||
    key !== SECURITY_KEY ||
    sender !== owner ||
    ownerOf(sender, { address }) !== owner
  )
    throw new AppError('NOT_PERMITTED', `${itemHash} is not what ${owner} permits`);
  if (!Object.hasOwn(fieldsOf(fields), AUTHORIZATIONS)) return undefined;
  const authorizations = parseAuthorizations(fieldsOf(fields)[AUTHORIZATIONS]);
  return { itemHash, time: message.time, since: effectiveTime(message), authorizations };
}

/** What a message does, as permissions know it. */
function actOf({ sender, chain, channel, type, content }: VerifiedMessage): Act {
  const { type: postType, key } = fieldsOf(content);
  const textOr = (value: unknown) => (typeof value === 'string' ? value : null);
  return {
    ...{ sender, chain, channel, type },
    contentType: type === 'POST' ? textOr(postType) : null,
    aggregateKey: type === 'AGGREGATE' ? textOr(key) : null,
  };
}

/**
 * Checks what the owner of a message signed about who may sign for them. It does not show that the core node lists all of it, or
 * that dates are right; a message that changes or forgets another one needs the permission for that one, too. Throws what `call`
 * throws. @returns undefined where the owner signed the message
 */
export async function proveDelegation(
  source: SignedMessageSource,
  message: VerifiedMessage,
): Promise<Delegation | undefined> {
  const owner = ownerOf(message.sender, message.content ?? {});
  if (owner === message.sender) return undefined;
  const { coreUrl, signal } = source;
  const time = effectiveTime(message);
  const filter = {
    ...{ msgTypes: 'AGGREGATE', owners: owner, contentKeys: SECURITY_KEY },
    // No later one decides of it, and nothing counts before its own date.
    endDate: Math.floor(time) + LIMITS.revocationSeconds + 1,
    ...({ pagination: MESSAGES_PER_PAGE, bodies: 'shared' } as const),
  };
  const readPage = (place: object) =>
    callRows(
      coreUrl,
      NETWORK_LISTS_API.listNetworkMessages,
      'messages',
      { query: { ...filter, ...place } },
      { signal },
    );
  const history: SecurityElement[] = [];
  const refused: RefusedMessage[] = [];
  let [verified, isCut] = [0, false];
  for await (const { messages, unreadable } of readPages(readPage)) {
    isCut = verified + refused.length >= MESSAGES_MAX;
    if (isCut) break;
    refused.push(...unreadable.map(refusalOfRow));
    for (const row of messages) {
      try {
        const element = await readElement(source, row, owner);
        if (element) history.push(element);
        verified++;
      } catch (error) {
        if (!(error instanceof AppError) || saysNothing(error)) throw error;
        refused.push({ itemHash: row.item_hash, code: error.code, message: error.message });
      }
    }
  }
  return {
    ...{ owner, verified, refused, isCut },
    grantedBy: securityAt(history, time)?.itemHash ?? null,
    refusal: findRefusal(history, actOf(message), time),
  };
}
