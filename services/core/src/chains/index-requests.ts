import { LIMITS } from '@skerry/protocol';
import type pg from 'pg';

/**
 * What became of a signed request to index a contract, or to do so no more. What one node indexes changes no message's status: its
 * sender learns it here.
 */
export interface IndexRequest {
  readonly itemHash: string;
  /** Why it was refused; null: it was done. */
  readonly refusal: { readonly code: string; readonly message: string } | null;
  readonly settledMs: number;
}

/** Those of one owner: whoever sends many pushes out only what became of their own. */
const KEPT_PER_OWNER = 100;
/** Of everybody, those of a day. Each has a stored message, which takes more room. */
const KEPT_MS = 24 * 3_600_000;

export async function noteIndexRequest(
  db: pg.Pool | pg.ClientBase,
  owner: string,
  { itemHash, refusal, settledMs }: IndexRequest,
): Promise<void> {
  await db.query(
    `insert into indexer_requests (item_hash, owner, code, message, settled_ms) values ($1, $2, $3, $4, $5)
     on conflict (item_hash) do update set
       code = excluded.code, message = excluded.message, settled_ms = excluded.settled_ms`,
    [
      itemHash,
      owner,
      refusal?.code ?? null,
      refusal?.message.slice(0, LIMITS.reasonChars) ?? null,
      settledMs,
    ],
  );
  await db.query(
    `delete from indexer_requests where item_hash in (
       (select item_hash from indexer_requests where owner = $1 order by settled_ms desc, item_hash offset $2)
       union all select item_hash from indexer_requests where settled_ms < $3)`,
    [owner, KEPT_PER_OWNER, settledMs - KEPT_MS],
  );
}

/** Newest first. */
export async function listIndexRequests(pool: pg.Pool, owner: string): Promise<IndexRequest[]> {
  const { rows } = await pool.query<{
    itemHash: string;
    code: string | null;
    message: string;
    settledMs: number;
  }>(
    `select item_hash as "itemHash", code, message, settled_ms as "settledMs" from indexer_requests
     where owner = $1 order by settled_ms desc, item_hash limit $2`,
    [owner, KEPT_PER_OWNER],
  );
  return rows.map(({ itemHash, code, message, settledMs }) => ({
    itemHash,
    refusal: code === null ? null : { code, message },
    settledMs,
  }));
}
