import type { TimedPage } from '@skerry/database';
import { type InstanceState, type InstanceView, instanceViewOf } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { isDeep, withTimeLimit } from '../lists/time-limit.ts';
import { stateOf } from './rows.ts';

export interface InstanceFilter {
  readonly address?: string | undefined;
  readonly status?: 'running' | 'stopped' | undefined;
  readonly nodeId?: string | undefined;
}

export async function findInstanceState(
  db: Kysely<Schema>,
  instanceId: string,
): Promise<InstanceState | undefined> {
  const row = await db
    .selectFrom('instances')
    .selectAll()
    .where('instance_id', '=', instanceId)
    .executeTakeFirst();
  return row && stateOf(row);
}

export async function findInstance(
  db: Kysely<Schema>,
  instanceId: string,
): Promise<InstanceView | undefined> {
  const state = await findInstanceState(db, instanceId);
  return state && instanceViewOf(state);
}

/** Newest first; equal times by id. Throws LIST_TOO_COSTLY. */
export const listInstances = (
  db: Kysely<Schema>,
  filter: InstanceFilter,
  page: TimedPage,
): Promise<{ states: InstanceState[]; total: number }> =>
  isDeep(page) ? withTimeLimit(db, (on) => readInstances(on, filter, page)) : readInstances(db, filter, page);

async function readInstances(db: Kysely<Schema>, filter: InstanceFilter, page: TimedPage) {
  let query = db.selectFrom('instances');
  if (filter.address !== undefined) query = query.where('owner', '=', filter.address);
  if (filter.nodeId !== undefined) query = query.where('node_id', '=', filter.nodeId);
  if (filter.status !== undefined)
    query = query.where('phase', filter.status === 'running' ? '=' : '!=', 'running');
  const { after } = page;
  const following = after
    ? query
        .where('created_at', '<=', after.time)
        .where((eb) => eb.or([eb('created_at', '<', after.time), eb('instance_id', '>', after.itemHash)]))
    : query;
  const rows = await following
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('instance_id')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const counted = await query.select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow();
  return { states: rows.map(stateOf), total: Number(counted.total) };
}
