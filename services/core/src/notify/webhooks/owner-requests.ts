import {
  AppError,
  LIMITS,
  normaliseAddress,
  parseWebhookAction,
  type VerifiedMessage,
  type WebhookAction,
  type WebhookActionContent,
} from '@skerry/protocol';
import type { WebhookAnswers, WebhookView } from '@skerry/protocol/api/core/webhooks';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { CAN_BE_DUE_AGAIN, dueAgain } from './delivery/deliveries.ts';
import { raiseVersion } from './endpoints.ts';
import { parseEventId } from './event-id.ts';
import { findFirstSeq } from './log-time.ts';
import {
  findDelivery,
  listDeliveries,
  listWebhooks,
  loadWebhook,
  type WebhookRow,
  webhookView,
} from './owner-view.ts';
import { checkMaySpeakFor } from './register.ts';
import type { SealedBox } from './sealed-box.ts';
import { stopWebhookIn } from './stop.ts';

/** How old a signed request of an owner may be. */
const REQUEST_AGE_MAX_SECONDS = 300;
const OVERLAP_DEFAULT_SECONDS = 86_400;
/** Replays of one webhook that are under way. */
const REPLAYS_MAX = 10;
/** Tests of one webhook that wait for its endpoint: they are no events, so that nothing else bounds them. */
const TESTS_MAX = 10;

export interface ActionRooms {
  readonly db: Kysely<Schema>;
  readonly secrets: SealedBox;
  readonly now: () => number;
}

/** While one request is carried out: what is kept of it, and what it changes, is one transaction. */
interface Turn extends ActionRooms {
  readonly db: Transaction<Schema>;
}

/** A request that somebody saw and sends again does nothing: it is young, and carried out once. One that failed was not. */
async function checkFresh({ db, now }: Turn, { time, itemHash }: VerifiedMessage): Promise<void> {
  const ageSeconds = now() / 1000 - time;
  if (ageSeconds > REQUEST_AGE_MAX_SECONDS)
    throw new AppError(
      'TIMESTAMP_TOO_OLD',
      `the request is ${Math.floor(ageSeconds)} seconds old; the limit is ${REQUEST_AGE_MAX_SECONDS}`,
    );
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('webhook_requests')
    .values({ item_hash: itemHash, time_ms: Math.max(now(), Math.round(time * 1000)) })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows === 0n)
    throw new AppError('REQUEST_REPEATED', 'this signed request was already carried out');
}

/** The webhook, if the signer may know of it. */
async function loadOwn(rooms: Turn, message: VerifiedMessage, webhookId: string): Promise<WebhookRow> {
  const row = await loadWebhook(rooms.db, webhookId);
  const isOwn =
    row !== undefined &&
    (await checkMaySpeakFor(rooms.db, message, row.owner, rooms.now()).then(
      () => true,
      (error: unknown) => {
        if (error instanceof AppError) return false;
        throw error;
      },
    ));
  if (!isOwn) throw new AppError('WEBHOOK_NOT_FOUND', 'the signer has no webhook with this id');
  return row;
}

type Action<A extends WebhookAction> = (
  rooms: Turn,
  row: WebhookRow,
  content: WebhookActionContent<A>,
) => Promise<WebhookAnswers[A]>;

/** Changes the row under the lock and says so to whoever plans and delivers. */
async function change(
  { db, now }: Turn,
  { number }: WebhookRow,
  apply: () => Promise<unknown>,
): Promise<void> {
  const version = await raiseVersion(db);
  await apply();
  await db.updateTable('webhooks').set({ version, updated_ms: now() }).where('number', '=', number).execute();
}

const reload = async ({ db }: Turn, { webhook_id }: WebhookRow): Promise<WebhookView> => {
  const row = await loadWebhook(db, webhook_id);
  if (!row) throw new AppError('WEBHOOK_NOT_FOUND', 'it has been deleted in the meantime');
  return webhookView(row);
};

const show: Action<'show'> = async ({ db }, row) => {
  const { rows } = await sql<{ waiting: number }>`
    select count(*) as waiting from webhook_deliveries where webhook = ${row.number} and state = 'waiting'`.execute(
    db,
  );
  return { ...webhookView(row), waiting: rows[0]!.waiting };
};

const pause: Action<'pause'> = async (rooms, row) => {
  await stopWebhookIn(rooms.db, row.number, 'paused', 'WEBHOOK_NOT_ACTIVE', rooms.now());
  return reload(rooms, row);
};

const resume: Action<'resume'> = async (rooms, row, { missed = 'deliver' }) => {
  // What is skipped ends with the log and not where the planner is, which may have to read some of it yet.
  await change(rooms, row, () =>
    sql`
      update webhooks set status = 'active', reason = null, failing_since_ms = null, hold_until_ms = 0,
        behind_seq = case when ${missed === 'skip'} then (select last_seq from event_counter) else behind_seq end
      where number = ${row.number} and status in ('paused', 'disabled')`.execute(rooms.db),
  );
  return reload(rooms, row);
};

const rotate: Action<'rotate'> = async (rooms, row, content) => {
  const overlapMs = (content.overlap_seconds ?? OVERLAP_DEFAULT_SECONDS) * 1000;
  const sealed = rooms.secrets.seal(content.secret, row.webhook_id);
  await change(rooms, row, () =>
    sql`
      update webhooks set secret = ${sealed},
        old_secret = case when ${overlapMs > 0} then secret end,
        old_secret_until_ms = case when ${overlapMs > 0} then ${rooms.now() + overlapMs}::bigint end
      where number = ${row.number} and status <> 'deleted'`.execute(rooms.db),
  );
  return reload(rooms, row);
};

const remove: Action<'delete'> = async (rooms, row) => {
  const { db } = rooms;
  await change(rooms, row, async () => {
    await sql`
      update webhooks set status = 'deleted', reason = null, url = '', events = '{}', filters = '{}', secret = '',
        old_secret = null, old_secret_until_ms = null, behind_seq = null, failing_since_ms = null
      where number = ${row.number}`.execute(db);
    await sql`delete from webhook_deliveries where webhook = ${row.number} and state = 'waiting'`.execute(db);
    await sql`delete from webhook_replays where webhook = ${row.number}`.execute(db);
  });
  return { webhook_id: row.webhook_id, status: 'deleted' };
};

function checkActive({ status }: WebhookRow): void {
  if (status !== 'active')
    throw new AppError('WEBHOOK_NOT_ACTIVE', `the webhook is ${status}; resume it first`);
}

/** One after the other of a webhook, so that what is counted stays so until it is written. */
const takeTurn = ({ db }: Turn, { number }: WebhookRow) =>
  sql`select from webhooks where number = ${number} for no key update`.execute(db);

const test: Action<'test'> = async (rooms, row) => {
  checkActive(row);
  await takeTurn(rooms, row);
  const { db, now } = rooms;
  const { rows: waiting } = await sql`
    select from webhook_deliveries where webhook = ${row.number} and seq < 0 and state = 'waiting' limit ${TESTS_MAX}`.execute(
    db,
  );
  if (waiting.length >= TESTS_MAX)
    throw new AppError(
      'OVERLOADED',
      `${TESTS_MAX} tests of this webhook are waiting for its endpoint; "deliveries" shows what it answers`,
    );
  const { rows } = await sql<{ seq: number }>`
    insert into webhook_deliveries (webhook, seq, event, due_ms, planned_ms)
    values (${row.number}, -nextval('webhook_tests'), 'webhook.test', ${now()}, ${now()}) returning seq`.execute(
    db,
  );
  const delivery = await findDelivery(db, row, rows[0]!.seq);
  return { webhook_id: row.webhook_id, event_id: delivery!.event_id };
};

const deliveries: Action<'deliveries'> = async (
  { db },
  row,
  { state, limit = LIMITS.pageSizeDefault, cursor },
) => {
  const page = await listDeliveries(db, row, { state, limit, before: parseCursor(cursor) });
  return { deliveries: page.items, next_cursor: page.next === null ? null : String(page.next) };
};

/** One that is in the log already, a test included, is due again at once. A test is no event, so that it has no cursor. */
async function replayOne(
  { db, now }: Turn,
  row: WebhookRow,
  eventId: string,
): Promise<WebhookAnswers['replay']> {
  const seq = parseEventId(eventId);
  const delivery = seq === undefined ? undefined : await findDelivery(db, row, seq);
  if (seq === undefined || delivery?.event_id !== eventId)
    throw new AppError('DELIVERY_NOT_FOUND', 'the log of this webhook has no delivery with this id');
  await sql`
    update webhook_deliveries set ${dueAgain(now())}
    where webhook = ${row.number} and seq = ${seq} and ${CAN_BE_DUE_AGAIN}`.execute(db);
  return { webhook_id: row.webhook_id, from_cursor: delivery.cursor, to_cursor: delivery.cursor };
}

const replay: Action<'replay'> = async (rooms, row, { event_id, since_ms, until_ms }) => {
  checkActive(row);
  if ((event_id === undefined) === (since_ms === undefined))
    throw new AppError('INVALID_CONTENT', 'content has either event_id, or since_ms and perhaps until_ms');
  if (event_id !== undefined) return replayOne(rooms, row, event_id);
  const { db } = rooms;
  const first = await findFirstSeq(db, since_ms!);
  const last =
    (until_ms === undefined ? await findFirstSeq(db, Infinity) : await findFirstSeq(db, until_ms)) - 1;
  await takeTurn(rooms, row);
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from webhook_replays where webhook = ${row.number}`.execute(db);
  if (rows[0]!.count >= REPLAYS_MAX)
    throw new AppError('OVERLOADED', `${REPLAYS_MAX} replays of this webhook are already running`);
  if (first <= last)
    await db
      .insertInto('webhook_replays')
      .values({ webhook: row.number, next_seq: first, last_seq: last })
      .execute();
  return { webhook_id: row.webhook_id, from_cursor: String(first), to_cursor: String(last) };
};

const ACTIONS: { readonly [A in Exclude<WebhookAction, 'list'>]: Action<A> } = {
  show,
  pause,
  resume,
  test,
  rotate,
  delete: remove,
  deliveries,
  replay,
};

/** The largest number of a webhook that its column holds. */
const WEBHOOK_NUMBER_MAX = 2 ** 31 - 1;

/** @param max what no number of the list is above */
function parseCursor(cursor: string | undefined, max = Number.MAX_SAFE_INTEGER): number | undefined {
  if (cursor === undefined) return undefined;
  if (!/^-?[0-9]{1,15}$/.test(cursor) || Math.abs(Number(cursor)) > max)
    throw new AppError('INVALID_CURSOR', 'the cursor does not come from an earlier page');
  return Number(cursor);
}

/** Nothing is kept of a request that is refused or fails: it may be sent again. */
const carryOut = <T>(
  rooms: ActionRooms,
  message: VerifiedMessage,
  body: (turn: Turn) => Promise<T>,
): Promise<T> =>
  rooms.db.transaction().execute(async (db) => {
    const turn = { ...rooms, db };
    await checkFresh(turn, message);
    return body(turn);
  });

/** The webhooks of an owner, newest first. */
export async function listOwn(rooms: ActionRooms, message: VerifiedMessage): Promise<WebhookAnswers['list']> {
  const content = parseWebhookAction('list', message.content);
  const owner = content.address === undefined ? message.sender : normaliseAddress(content.address);
  const limit = content.limit ?? LIMITS.pageSizeDefault;
  const before = parseCursor(content.cursor, WEBHOOK_NUMBER_MAX);
  const rows = await carryOut(rooms, message, async ({ db, now }) => {
    await checkMaySpeakFor(db, message, owner, now());
    return listWebhooks(db, owner, { limit, before });
  });
  const next = rows.length < limit ? null : String(rows.at(-1)!.number);
  return { webhooks: rows.map(webhookView), next_cursor: next };
}

/**
 * Carries out what the owner of a webhook asks for by a signed WEBHOOK message, which is not kept.
 * @param webhookId of the path
 * @throws AppError TIMESTAMP_TOO_OLD, REQUEST_REPEATED, WEBHOOK_NOT_FOUND, ID_MISMATCH, and what the action refuses
 */
export async function runAction<A extends Exclude<WebhookAction, 'list'>>(
  rooms: ActionRooms,
  action: A,
  message: VerifiedMessage,
  webhookId: string,
): Promise<WebhookAnswers[A]> {
  const content = parseWebhookAction(action, message.content);
  if (content.webhook_id !== webhookId)
    throw new AppError('ID_MISMATCH', 'the id in the path differs from the signed id');
  return carryOut(rooms, message, async (turn) =>
    ACTIONS[action](turn, await loadOwn(turn, message, webhookId), content),
  );
}
