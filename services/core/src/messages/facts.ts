import { type InstanceStatusContent, NETWORK_POST } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { ObservedStatus } from '../instances/fold.ts';
import { stateOf } from '../instances/rows.ts';
import { type InstanceState, isLater } from '../instances/state.ts';
import type { Accepted, Change, Facts } from './accepted.ts';

/** The facts of a batch: read once, then kept up to date as the batch's messages are decided one after another. */
export interface BatchFacts extends Facts {
  note(accepted: Accepted, changes: readonly Change[]): void;
}

const observedKey = (instanceId: string, nodeAddress: string) => `${instanceId} ${nodeAddress}`;

async function loadInstances(db: Kysely<Schema>, ids: string[]): Promise<Map<string, InstanceState>> {
  if (ids.length === 0) return new Map();
  const rows = await db.selectFrom('instances').selectAll().where('instance_id', 'in', ids).execute();
  return new Map(rows.map((row) => [row.instance_id, stateOf(row)]));
}

async function loadFiles(db: Kysely<Schema>, hashes: string[]): Promise<Set<string>> {
  if (hashes.length === 0) return new Set();
  const rows = await db.selectFrom('files').select('hash').where('hash', 'in', hashes).execute();
  return new Set(rows.map((row) => row.hash));
}

async function findObserved(
  db: Kysely<Schema>,
  instanceId: string,
  nodeAddress: string,
): Promise<ObservedStatus | undefined> {
  const row = await db
    .selectFrom('messages')
    .select(['item_hash', 'content'])
    .where('post_type', '=', NETWORK_POST.instanceStatus)
    .where('sender', '=', nodeAddress)
    .where(sql<string>`content -> 'content' ->> 'instance_id'`, '=', instanceId)
    .orderBy(sql`(content -> 'content' ->> 'observed_at_ms')::bigint`, 'desc')
    .orderBy('item_hash', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row && { itemHash: row.item_hash, content: row.content.content as InstanceStatusContent };
}

const distinct = (values: readonly string[]) => [...new Set(values)];

export async function loadFacts(
  db: Kysely<Schema>,
  batch: readonly Accepted[],
  schedulers: ReadonlySet<string>,
): Promise<BatchFacts> {
  const instances = await loadInstances(db, distinct(batch.flatMap((one) => one.needs.instanceIds)));
  const files = await loadFiles(db, distinct(batch.flatMap((one) => one.needs.fileHashes)));
  const observed = new Map<string, ObservedStatus | undefined>();
  for (const { instanceId, nodeAddress } of batch.flatMap((one) => one.needs.observed)) {
    observed.set(observedKey(instanceId, nodeAddress), await findObserved(db, instanceId, nodeAddress));
  }
  return {
    schedulers,
    instance: (id) => instances.get(id),
    hasFile: (hash) => files.has(hash),
    observed: (instanceId, nodeAddress) => observed.get(observedKey(instanceId, nodeAddress)),
    note: ({ message, postType }, changes) => {
      for (const change of changes) {
        if (change.kind === 'instance') instances.set(change.state.instanceId, change.state);
        if (change.kind === 'file') files.add(change.file.hash);
      }
      if (postType !== NETWORK_POST.instanceStatus) return;
      const content = message.content.content as InstanceStatusContent;
      const key = observedKey(content.instance_id, message.sender);
      const stamp = [content.observed_at_ms, message.itemHash] as const;
      const before = observed.get(key);
      if (isLater(stamp, before ? [before.content.observed_at_ms, before.itemHash] : null)) {
        observed.set(key, { itemHash: message.itemHash, content });
      }
    },
  };
}
