import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { run } from '../../../services/compute/src/host/run.ts';
import type { Cluster } from './cluster.ts';
import { logOf } from './logs.ts';
import { addressOf, NAMES, type Name } from './page.ts';

const LOOK_MS = 2_000;
const ASK_TIMEOUT_MS = 2_000;

const STANDBYS = `
  select pg_is_in_recovery() as standby, current_setting('synchronous_standby_names') as waits_for,
    (select json_agg(application_name || ' ' || state || ' ' || sync_state order by pid) from pg_stat_replication) as sends_to,
    (select status from pg_stat_wal_receiver) as receives`;
const PLACES = `
  select case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_flush_lsn() end as at,
    (select json_agg(application_name || ' ' || flush_lsn order by pid) from pg_stat_replication) as sent`;
/** Where Patroni keeps who the synchronous standby is. */
const SYNC_KEY = '/v2/keys/service/skerry/sync';

const reasonOf = (error: unknown) => `no answer: ${(error as Error).message}`;

async function askServer(name: Name, query: string): Promise<unknown> {
  const client = new pg.Client({
    ...{ host: addressOf(name), user: 'postgres', password: 'PASSWORD1', database: 'postgres' },
    ...{ connectionTimeoutMillis: ASK_TIMEOUT_MS, query_timeout: ASK_TIMEOUT_MS },
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(query)).rows[0];
  } catch (error) {
    return reasonOf(error);
  } finally {
    client.end().catch(() => {});
  }
}

async function askEtcd(name: Name): Promise<unknown> {
  try {
    const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
    return await (await fetch(`http://${addressOf(name)}:2379${SYNC_KEY}`, { signal })).json();
  } catch (error) {
    return reasonOf(error);
  }
}

const ofEach = async <T>(ask: (name: Name) => Promise<T>): Promise<Record<string, T>> =>
  Object.fromEntries(await Promise.all(NAMES.map(async (name) => [name, await ask(name)] as const)));

const viewOf = (cluster: Cluster) => async (name: Name) =>
  (await cluster.membersBy(name)).map((member) => `${member.name} ${member.role} ${member.state}`);

/** Writes down what each Patroni and each server says of the others, whenever that changes. */
export async function observe(directory: string, cluster: Cluster, signal: AbortSignal): Promise<void> {
  let before: unknown;
  while (!signal.aborted) {
    const now = {
      patroni: await ofEach(viewOf(cluster)),
      postgres: await ofEach((name) => askServer(name, STANDBYS)),
    };
    if (!isDeepStrictEqual(now, before)) note(directory, 'states', now);
    before = now;
    await delay(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

/** Writes down how everything stands, for whoever asks why the soak failed. */
export async function writeEnd(directory: string, cluster: Cluster): Promise<void> {
  note(directory, 'end', {
    patroni: await ofEach((name) => cluster.membersBy(name)),
    postgres: await ofEach((name) => askServer(name, STANDBYS)),
    places: await ofEach((name) => askServer(name, PLACES)),
    etcd: await ofEach(askEtcd),
  });
  const processes = await run('ps', ['-eo', 'pid,ppid,stat,etime,args']);
  appendFileSync(logOf(directory, 'processes'), processes);
}

const note = (directory: string, part: string, what: unknown): void =>
  appendFileSync(logOf(directory, part), `${new Date().toISOString()} ${JSON.stringify(what)}\n`);
