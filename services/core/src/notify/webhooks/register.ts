import {
  AppError,
  effectiveTime,
  findRefusal,
  normaliseAddress,
  ownerOf,
  parseWebhookContent,
  type VerifiedMessage,
} from '@skerry/protocol';
import { type Kysely, sql, type Transaction } from 'kysely';
import { MESSAGE_TYPES } from '../../intake/kinds.ts';
import { readSecurity } from '../../state/addresses/authorizations.ts';
import type { Schema, WebhookStatus } from '../../store/schema.ts';
import { lockPlanner, raiseVersion } from './endpoints.ts';
import type { SealedBox } from './sealed-box.ts';

const WEBHOOKS_PER_OWNER_MAX = 100;
/**
 * Of all owners: each event may become a delivery for each, and each delivering process knows all of them. Keys are free, so strangers
 * can take all places but those for exempt clients.
 */
const WEBHOOKS = { total: 10_000, reserve: 1_000 } as const;
/** Seconds: nobody knows when somebody deletes one. */
const RETRY_AFTER = 3_600;
const CONCURRENCY_DEFAULT = 8;
/** Seconds. Ids of deleted webhooks are remembered for longer (DELETED_KEPT_MS), so that no registration can be played again. */
const REGISTRATION_AGE_MAX = 7 * 86_400;

/**
 * Throws NOT_PERMITTED where the signer may not speak for the owner (docs/decisions.md 6). Nobody noted it before this
 * node.
 */
export async function checkMaySpeakFor(
  db: Kysely<Schema>,
  message: VerifiedMessage,
  owner: string,
  nowMs: number,
): Promise<void> {
  if (owner === message.sender) return;
  const { sender, chain, type, channel } = message;
  const acting = { senders: new Set([sender]), values: new Set([chain, type, channel]) };
  const time = effectiveTime({ time: message.time, notedMs: nowMs });
  const history = (await readSecurity(db, [owner], acting, new Set([time]))).get(owner) ?? [];
  const act = { ...message, contentType: null, aggregateKey: null };
  if (!findRefusal(history, act, time)) return;
  throw new AppError('NOT_PERMITTED', `${message.sender} has no permission from ${owner} for this`);
}

function checkAge({ time }: VerifiedMessage, nowMs: number): void {
  const ageSeconds = Math.floor(nowMs / 1000 - time);
  if (ageSeconds > REGISTRATION_AGE_MAX)
    throw new AppError(
      'TIMESTAMP_TOO_OLD',
      `the registration is ${ageSeconds} seconds old; the limit is ${REGISTRATION_AGE_MAX}: sign it again`,
    );
}

/** Nothing is planned meanwhile: it reads those that are kept, however many were deleted. */
export async function countWebhooks(
  trx: Transaction<Schema>,
  owner: string,
  webhookId: string,
): Promise<{ readonly known: WebhookStatus | null; readonly own: number; readonly all: number }> {
  const { rows } = await sql<{ known: WebhookStatus | null; own: number; all: number }>`
    select (select status from webhooks where webhook_id = ${webhookId}) as known,
      (select count(*) from webhooks where owner = ${owner} and status <> 'deleted') as own,
      (select count(*) from webhooks where status <> 'deleted') as all`.execute(trx);
  return rows[0]!;
}

/** A type that no message has is a mistake of which nothing would ever be told. Throws INVALID_CONTENT. */
function checkTypes(types: readonly string[]): void {
  const unknown = types.find((type) => !MESSAGE_TYPES.includes(type));
  if (unknown === undefined) return;
  throw new AppError(
    'INVALID_CONTENT',
    `content.filters.types has the unknown type ${JSON.stringify(unknown)}; known: ${MESSAGE_TYPES.join(', ')}`,
  );
}

export interface RegisterOptions {
  readonly db: Kysely<Schema>;
  readonly secrets: SealedBox;
  readonly now: () => number;
  /** Throws WEBHOOK_URL_REFUSED. */
  readonly checkUrl: (url: URL) => void;
  /** Whether it is asked for by one of the operator's own clients. */
  readonly isExempt: boolean;
}

/**
 * A WEBHOOK message carries a secret (docs/decisions.md 5): it is verified and applied, and neither kept among the public
 * messages nor told to anybody. The secret is sealed with the node's own key before it reaches the database. Sent twice
 * it is the same webhook; one that was deleted stays so, and whoever sends it again hears that.
 * @throws AppError INVALID_CONTENT, UNKNOWN_FIELD, WEBHOOK_URL_REFUSED, NOT_PERMITTED, WEBHOOK_NOT_FOUND, TIMESTAMP_TOO_OLD,
 * WEBHOOK_LIMIT, OVERLOADED
 */
export async function registerWebhook(
  { db, secrets, now, checkUrl, isExempt }: RegisterOptions,
  message: VerifiedMessage,
): Promise<void> {
  const content = parseWebhookContent(message.content);
  const { url, events, secret, filters = {}, concurrency = CONCURRENCY_DEFAULT } = content;
  checkTypes(filters.types ?? []);
  checkUrl(new URL(url));
  const owner = ownerOf(message.sender, content);
  await checkMaySpeakFor(db, message, owner, now());
  const senders = filters.senders?.map(normaliseAddress);
  const kept = JSON.stringify({ ...filters, ...(senders ? { senders } : {}) });
  await db.transaction().execute(async (trx) => {
    // The lock makes the count hold, and every event after the answer one that is planned for.
    await lockPlanner(trx);
    const { known, own, all } = await countWebhooks(trx, owner, message.itemHash);
    if (known === 'deleted')
      throw new AppError(
        'WEBHOOK_NOT_FOUND',
        'the webhook of this registration was deleted: sign a new registration',
      );
    if (known) return;
    checkAge(message, now());
    if (own >= WEBHOOKS_PER_OWNER_MAX)
      throw new AppError('WEBHOOK_LIMIT', `${owner} already has ${WEBHOOKS_PER_OWNER_MAX} webhooks`);
    const max = isExempt ? WEBHOOKS.total : WEBHOOKS.total - WEBHOOKS.reserve;
    if (all >= max)
      throw new AppError('OVERLOADED', `this node has ${max} webhooks, as many as it takes`, {
        details: { retry_after: RETRY_AFTER },
      });
    const version = await raiseVersion(trx);
    await sql`
      insert into webhooks (webhook_id, owner, url, events, secret, created, filters, concurrency, behind_seq, version, updated_ms)
      select ${message.itemHash}, ${owner}, ${url}, ${[...events]}, ${secrets.seal(secret, message.itemHash)}, ${message.time},
        ${kept}::jsonb, ${concurrency}, last_seq, ${version}, ${now()} from event_counter`.execute(trx);
  });
}
