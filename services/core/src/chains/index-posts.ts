import { asDatabaseError, inTransaction } from '@skerry/database';
import type { Indexer } from '@skerry/indexer';
import { Failures, type Logger, pause } from '@skerry/kit';
import { AppError, createParser, creditsOf, NETWORK_POST } from '@skerry/protocol';
import { Type } from '@skerry/protocol/type';
import type { Kysely } from 'kysely';
import type pg from 'pg';
import type { EventLog } from '../notify/events/log.ts';
import { getAccount } from '../state/credits/accounts.ts';
import { findMessage } from '../state/messages/find.ts';
import type { Schema } from '../store/schema.ts';
import { noteIndexRequest } from './index-requests.ts';

/** The inner content of a POST `net-index`: its sender asks for a contract, or takes the wish back. */
const IndexContent = Type.Object(
  {
    action: Type.Union([Type.Literal('add'), Type.Literal('remove')]),
    network: Type.String({ maxLength: 64 }),
    contract: Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }),
    abi: Type.Optional(Type.Array(Type.Unknown(), { minItems: 1, maxItems: 4096 })),
    start_block: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    transactions: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);

const parseIndexContent = createParser(IndexContent, 'content');

const READ_PAGE = 500;
/** So often a wish is tried that fails for a reason nobody foresaw: a race passes; what does not is put aside. */
const TRIES_MAX = 3;

/**
 * What a POST `net-index` asks for, done. Throws INVALID_CONTENT, and what `watch` and `unwatch` throw.
 *
 * @param owner the address that signed it
 */
async function applyIndexPost(
  { indexer, ...ledger }: Pick<FollowOptions, 'db' | 'indexer' | 'creditPublishers' | 'now'>,
  owner: string,
  content: unknown,
): Promise<void> {
  const {
    action,
    network,
    contract,
    abi,
    start_block: startBlock = 0,
    transactions = false,
  } = parseIndexContent(content);
  if (action === 'remove') return indexer.unwatch({ network, contract, owner });
  if (!abi) throw new AppError('INVALID_CONTENT', 'content lacks "abi"');
  const credits = await creditsOfOwner(ledger, owner);
  return indexer.watch({ network, contract, abi, startBlock, transactions, owner, credits });
}

/** @returns whole credits; undefined where nobody can have any, as the node trusts nobody who could give them */
async function creditsOfOwner(
  { db, creditPublishers, now }: Pick<FollowOptions, 'db' | 'creditPublishers' | 'now'>,
  owner: string,
): Promise<bigint | undefined> {
  if (creditPublishers.size === 0) return undefined;
  const { balance } = await getAccount(db, owner, now() / 1000);
  return creditsOf(balance);
}

export interface FollowOptions {
  readonly db: Kysely<Schema>;
  readonly pool: pg.Pool;
  readonly events: EventLog;
  readonly indexer: Indexer;
  /** Whose word of credit counts, as the node learns it. */
  readonly creditPublishers: ReadonlySet<string>;
  readonly now: () => number;
  readonly log: Logger;
}

/** Reads the node's own events for signed wishes, from where it stood when it last ran. */
export function followIndexPosts(options: FollowOptions): AsyncDisposable {
  const stop = new AbortController();
  // Without a network there is nothing that anybody could ask for.
  const running =
    options.indexer.settings.networks.length === 0 ? Promise.resolve() : follow(options, stop.signal);
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

async function follow(options: FollowOptions, signal: AbortSignal): Promise<void> {
  const { pool, events, log } = options;
  const failures = new Failures({
    log,
    what: 'requests to index contracts could not be read; retrying',
  });
  while (!signal.aborted) {
    const { wakes } = events;
    try {
      const { rows } = await pool.query<{ cursor: string }>('select cursor from indexer_posts');
      const page = await events.read(rows[0]?.cursor ?? '0', READ_PAGE);
      for (const event of page) {
        if (event.kind !== 'message' || event.data.content_type !== NETWORK_POST.index) continue;
        await applyOne(options, event.data.item_hash, event.cursor);
      }
      const last = page.at(-1);
      if (last) await noteRead(pool, last.cursor);
      failures.clear();
      if (page.length < READ_PAGE) await events.waitForMore(wakes, signal);
    } catch (error) {
      // New events end no rest: the node may be busy with other things than wishes.
      if (!signal.aborted) await pause(failures.note(error), signal);
    }
  }
}

async function noteRead(db: pg.Pool | pg.ClientBase, cursor: string): Promise<void> {
  await db.query(
    'insert into indexer_posts (cursor) values ($1) on conflict (id) do update set cursor = excluded.cursor',
    [cursor],
  );
}

/** @param cursor of the event that tells of it */
async function applyOne(options: FollowOptions, itemHash: string, cursor: string): Promise<void> {
  const { db, pool, now, log } = options;
  const message = await findMessage(db, itemHash);
  // What its sender has taken back meanwhile asks for nothing, and may have lost what it said.
  if (message?.status !== 'processed' || message.content === null) return;
  const { sender, content } = message;
  const refusal = await refusalOf(() => applyIndexPost(options, sender, content.content), log);
  if (refusal)
    log.info({ item_hash: itemHash, code: refusal.code }, 'a request to index a contract was refused');
  // Who takes a wish back a second time has none: what was done is not read again, and not told as refused then.
  await inTransaction(pool, async (client) => {
    await noteIndexRequest(client, sender, { itemHash, refusal, settledMs: now() });
    await noteRead(client, cursor);
  });
}

/**
 * A wish that cannot be had is over; one that cannot be had now is none. One at which this node itself fails is over too, as those
 * of others wait behind it.
 */
async function refusalOf(apply: () => Promise<void>, log: Logger): Promise<AppError | null> {
  for (let attempt = 1; ; attempt++)
    try {
      await apply();
      return null;
    } catch (error) {
      if (error instanceof AppError) {
        if (error.kind === 'unavailable') throw error;
        return error;
      }
      if (asDatabaseError(error)) throw error;
      if (attempt < TRIES_MAX) continue;
      log.error({ err: error }, 'a request to index a contract failed, and is put aside');
      return new AppError('INTERNAL', 'this node failed at the request; its log says why');
    }
}
