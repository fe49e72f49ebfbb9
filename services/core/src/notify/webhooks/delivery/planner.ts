import { prepared } from '@skerry/database';
import { type Kysely, sql, type Transaction } from 'kysely';
import type { Schema } from '../../../store/schema.ts';
import { LINEAGE } from '../../../store/write-lock.ts';
import {
  type Endpoint,
  type EndpointBook,
  lockPlanner,
  type PlannerRow,
  raiseVersion,
} from '../endpoints.ts';
import { fits } from '../subscriptions.ts';
import type { LoggedEvent } from '../topics/topic.ts';
import { findTopic } from '../topics/topics.ts';
import { addBefore, type Body, bodyOf } from './bodies.ts';
import { CAN_BE_DUE_AGAIN, type Claimed, dueAgain } from './deliveries.ts';

/** Events that are read in one transaction. */
const EVENTS_MAX = 1_000;
/** Deliveries that are written in one transaction; one event may have more. */
const ROWS_MAX = 10_000;
/** Webhooks that are brought up to date in one transaction, and the events that are read for each. */
const BEHIND_MAX = 20;
const BEHIND_EVENTS_MAX = 500;

interface Row {
  readonly webhook: number;
  readonly seq: number;
  readonly event: string;
  /** Whoever planned it delivers it at once, and has it until then. */
  readonly leaseEndMs?: number;
}

/** The room of whoever delivers, as the planner sees it. */
export interface DeliveryCapacity {
  readonly leaseMs: number;
  /** How many new deliveries of a webhook it takes straight from the planner. */
  roomFor(webhook: number): number;
}

export interface Round {
  /** Webhooks that have something new to deliver in the table. */
  readonly touched: ReadonlySet<number>;
  /** What was handed over for delivery: once this is committed, it is to begin. */
  readonly taken?: readonly Claimed[];
  /** There may be more to do at once. */
  readonly isMore: boolean;
}

async function readEvents(
  db: Kysely<Schema>,
  { after, to, limit }: { after: number; to: number; limit: number },
): Promise<LoggedEvent[]> {
  const { rows } = await sql<{ seq: number; kind: string; data: Record<string, unknown>; time_ms: number }>`
    select seq, kind, data, time_ms from events where seq > ${after} and seq <= ${to} order by seq limit ${limit}`.execute(
    db,
  );
  return addBefore(
    db,
    rows.map(({ time_ms, ...row }) => ({ ...row, timeMs: time_ms })),
  );
}

/** `again`: what was attempted is delivered once more, and at once. */
async function insertRows(
  trx: Transaction<Schema>,
  rows: readonly Row[],
  nowMs: number,
  again = false,
): Promise<void> {
  if (rows.length === 0) return;
  const onConflict = again
    ? sql`(webhook, seq) do update set ${dueAgain(nowMs)} where ${CAN_BE_DUE_AGAIN}`
    : sql`do nothing`;
  await sql`
    insert into webhook_deliveries (webhook, seq, event, due_ms, planned_ms)
    select *, ${nowMs}::bigint from unnest(
      ${rows.map((row) => row.webhook)}::int[], ${rows.map((row) => row.seq)}::bigint[],
      ${rows.map((row) => row.event)}::text[], ${rows.map((row) => row.leaseEndMs ?? nowMs)}::bigint[])
    on conflict ${onConflict}`.execute(trx);
}

const rowsFor = (endpoint: Endpoint, events: readonly LoggedEvent[]): Row[] =>
  events.flatMap((event) => {
    const topic = findTopic(event.kind);
    const traits = topic && endpoint.events.includes(topic.name) ? topic.read(event) : undefined;
    return topic && traits && fits(endpoint.filters, traits)
      ? [{ webhook: endpoint.number, seq: event.seq, event: topic.name }]
      : [];
  });

interface Planned {
  readonly rows: readonly Row[];
  readonly taken: readonly Claimed[];
  readonly lastSeq: number;
}

/**
 * Who is told of which event. While there is capacity for a webhook its deliveries are handed over at once, which saves them a
 * way through the table; from the first that does not, all of them wait their turn.
 */
function match(
  events: readonly LoggedEvent[],
  book: EndpointBook,
  capacity: DeliveryCapacity,
  nowMs: number,
): Planned {
  const rows: Row[] = [];
  const taken: Claimed[] = [];
  const room = new Map<number, number>();
  for (const event of events) {
    const topic = findTopic(event.kind);
    const traits = topic?.read(event);
    if (!topic || !traits) continue;
    let body: Body | undefined;
    for (const webhook of book.subscribersOf(topic.name, traits)) {
      const row = { webhook, seq: event.seq, event: topic.name };
      const left = room.get(webhook) ?? capacity.roomFor(webhook);
      room.set(webhook, left - 1);
      if (left <= 0) {
        rows.push(row);
        continue;
      }
      const leaseEndMs = nowMs + capacity.leaseMs;
      body ??= bodyOf(event);
      rows.push({ ...row, leaseEndMs });
      taken.push({ webhook, seq: event.seq, attempts: 0, plannedMs: nowMs, leaseEndMs, body });
    }
    if (rows.length >= ROWS_MAX) return { rows, taken, lastSeq: event.seq };
  }
  return { rows, taken, lastSeq: events.at(-1)?.seq ?? 0 };
}

/** Deliveries of new events to the live webhooks. */
async function planNew(
  trx: Transaction<Schema>,
  { book, capacity }: DeliveryPlannerOptions,
  planner: PlannerRow,
  nowMs: number,
): Promise<Round> {
  const { last_seq: head } = await trx
    .selectFrom('event_counter')
    .select('last_seq')
    .executeTakeFirstOrThrow();
  if (head === planner.last_seq) return { touched: new Set(), isMore: false };
  const events =
    book.liveCount === 0
      ? []
      : await readEvents(trx, { after: planner.last_seq, to: head, limit: EVENTS_MAX });
  const { rows, taken, lastSeq } = match(events, book, capacity, nowMs);
  const isAll = events.length < EVENTS_MAX && lastSeq === (events.at(-1)?.seq ?? 0);
  await insertRows(trx, rows, nowMs);
  await trx
    .updateTable('webhook_planner')
    .set({ last_seq: isAll ? head : lastSeq })
    .execute();
  const touched = new Set(rows.filter((row) => row.leaseEndMs === undefined).map((row) => row.webhook));
  return { touched, taken, isMore: !isAll };
}

export interface DeliveryPlannerOptions {
  readonly db: Kysely<Schema>;
  readonly book: EndpointBook;
  readonly capacity: DeliveryCapacity;
  readonly now: () => number;
}

/** What the planner sees at a look. */
interface Look extends Pick<PlannerRow, 'version' | 'timeline'> {
  readonly is_news: boolean;
  readonly is_replayed: boolean;
}

/**
 * Turns events of the log into deliveries: the rows and the planner's place in the log are one transaction, so that no
 * crash loses an event or plans one twice.
 */
export class DeliveryPlanner {
  readonly #options: DeliveryPlannerOptions;
  /** Webhooks with as many waiting deliveries as they may have. */
  #full: ReadonlySet<number> = new Set();
  /** The webhook and the replay that had the last turn: the next ones begin behind them, so that long ones hold nobody up. */
  #caughtUp = 0;
  #replayed = 0;

  constructor(options: DeliveryPlannerOptions) {
    this.#options = options;
  }

  /**
   * Whether there is something to plan: a look that locks nothing, in the place of transactions that would find nothing. Events are none
   * where no webhook is live: the planner passes over them when one is to be.
   */
  async isDue(): Promise<boolean> {
    const { db, book } = this.#options;
    if (book.hasBehind) return true;
    const { rows } = await sql<Look>`${prepared()}
      select p.version, ${sql.raw(LINEAGE)} as timeline, p.last_seq <> c.last_seq as is_news,
        exists (select from webhook_replays) as is_replayed
      from webhook_planner p, event_counter c`.execute(db);
    const { is_news: isNews, is_replayed: isReplayed, ...planner } = rows[0]!;
    return isReplayed || !book.isCurrent(planner) || (isNews && book.liveCount > 0);
  }

  /** New events for the webhooks that are up to date. */
  run(): Promise<Round> {
    const { db, book, now } = this.#options;
    return db.transaction().execute(async (trx) => {
      const planner = await lockPlanner(trx);
      await book.refresh(trx, planner);
      return planNew(trx, this.#options, planner, now());
    });
  }

  /** Webhooks that are full are put behind: the rest of their events waits in the log and not in rows. */
  async putBehind(full: ReadonlySet<number>): Promise<void> {
    const { db, book } = this.#options;
    this.#full = full;
    const live = [...full].filter((number) => {
      const endpoint = book.find(number);
      return endpoint?.status === 'active' && endpoint.behindSeq === null;
    });
    if (live.length === 0) return;
    await db.transaction().execute(async (trx) => {
      const { last_seq } = await lockPlanner(trx);
      const version = await raiseVersion(trx);
      await sql`update webhooks set behind_seq = ${last_seq}, version = ${version}
        where number = any(${live}::int[]) and behind_seq is null and status = 'active'`.execute(trx);
    });
  }

  /** Webhooks that are new, were paused or were full, up to where the planner is: from there on they are live. */
  catchUp(): Promise<Round> {
    const { db, book, now } = this.#options;
    return db.transaction().execute(async (trx) => {
      const planner = await lockPlanner(trx);
      const full = [...this.#full];
      const { numAffectedRows = 0n } = await sql`
        update webhooks set behind_seq = null, version = ${planner.version + 1}
        where behind_seq = ${planner.last_seq} and status = 'active' and number <> all(${full}::int[])`.execute(
        trx,
      );
      const { rows: behind } = await sql<{ number: number; behind_seq: number }>`
        select number, behind_seq from webhooks
        where behind_seq < ${planner.last_seq} and status = 'active' and number <> all(${full}::int[])
        order by number <= ${this.#caughtUp}, number limit ${BEHIND_MAX}`.execute(trx);
      if (numAffectedRows === 0n && behind.length === 0) return { touched: new Set<number>(), isMore: false };
      this.#caughtUp = behind.at(-1)?.number ?? 0;
      const version = await raiseVersion(trx);
      await book.refresh(trx, planner);
      const touched = new Set<number>();
      for (const { number, behind_seq: after } of behind) {
        const events = await readEvents(trx, { after, to: planner.last_seq, limit: BEHIND_EVENTS_MAX });
        const endpoint = book.find(number);
        if (endpoint) await insertRows(trx, rowsFor(endpoint, events), now());
        const reached = events.length < BEHIND_EVENTS_MAX ? null : events.at(-1)!.seq;
        await trx
          .updateTable('webhooks')
          .set({ behind_seq: reached, version })
          .where('number', '=', number)
          .execute();
        touched.add(number);
      }
      return { touched, isMore: behind.length > 0 };
    });
  }

  /** The next piece of each replay that was asked for. */
  replay(): Promise<Round> {
    const { db, book, now } = this.#options;
    return db.transaction().execute(async (trx) => {
      const planner = await lockPlanner(trx);
      const full = [...this.#full];
      const replays = await trx
        .selectFrom('webhook_replays')
        .selectAll()
        .where(sql<boolean>`webhook <> all(${full}::int[])`)
        .orderBy(sql`id <= ${this.#replayed}`)
        .orderBy('id')
        .limit(BEHIND_MAX)
        .execute();
      if (replays.length === 0) return { touched: new Set<number>(), isMore: false };
      this.#replayed = replays.at(-1)!.id;
      await book.refresh(trx, planner);
      for (const { id, webhook, next_seq, last_seq } of replays) {
        const events = await readEvents(trx, { after: next_seq - 1, to: last_seq, limit: BEHIND_EVENTS_MAX });
        const endpoint = book.find(webhook);
        if (endpoint) await insertRows(trx, rowsFor(endpoint, events), now(), true);
        if (!endpoint || events.length < BEHIND_EVENTS_MAX)
          await trx.deleteFrom('webhook_replays').where('id', '=', id).execute();
        else
          await trx
            .updateTable('webhook_replays')
            .set({ next_seq: events.at(-1)!.seq + 1 })
            .where('id', '=', id)
            .execute();
      }
      return { touched: new Set(replays.map((one) => one.webhook)), isMore: true };
    });
  }
}
