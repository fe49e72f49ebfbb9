import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { sha256Hex } from '@skerry/protocol';
import { startReceiver } from '../../notify/webhooks/testing/setup.ts';
import { signers } from '../../testing/core.ts';
import { type NodeProcess, startNode } from '../../testing/node.ts';

const log = createLogger('test', 'silent');

async function place() {
  const database = await createTestDatabase({ log });
  const home = await mkdtemp(join(tmpdir(), 'skerry-roles-'));
  const started: NodeProcess[] = [];
  return {
    home,
    database,
    /** A process with these roles; on one data directory unless said otherwise. */
    async start(roles: string, settings: Readonly<Record<string, string>> = {}, at = home) {
      const node = await startNode(at, database.url, {
        SKERRY_CORE_ROLES: roles,
        SKERRY_CORE_WEBHOOK_ALLOW_HTTP: 'yes',
        SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
        ...settings,
      });
      started.push(node);
      return node;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((one) => one.end('SIGKILL')));
      await database[Symbol.asyncDispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}

const submit = (node: NodeProcess, type: string, content: unknown) => {
  const { body, itemHash } = signMessage({ type, content, channel: 'roles' }, signers.alice);
  const headers = { 'content-type': 'application/json' };
  const path = type === 'WEBHOOK' ? 'webhooks' : 'messages';
  return fetch(`${node.url}/api/v0/${path}`, { method: 'POST', headers, body }).then(async (answer) => ({
    status: answer.status,
    body: await answer.json(),
    itemHash,
  }));
};
const leads = async (node: NodeProcess, role = 'write') =>
  (await (await fetch(`${node.url}/metrics`)).text()).includes(`skerry_leads{role="${role}"} 1`);

describe('roles of processes on one database', () => {
  // 14 CPU seconds.
  test('one answers, two others write and deliver; when the one that leads is killed the other one does its work', async () => {
    await using where = await place();
    await using receiver = await startReceiver();
    const answering = await where.start('answer', { SKERRY_CORE_PENDING_HORIZON_SECONDS: '1' });
    const rolesOf = async () => (await (await fetch(`${answering.url}/health`)).json()).checks.roles;
    const vacant = await rolesOf();
    assert.equal(vacant.status, 'degraded');
    assert.match(vacant.reason, /^no process has the role write .*; no process has the role deliver /);
    const others = await Promise.all([where.start('write,deliver'), where.start('write,deliver')]);
    await until('every role is filled', rolesOf, ({ status }) => status === 'ok');
    const registered = await submit(answering, 'WEBHOOK', {
      url: receiver.url,
      events: ['message.new'],
      secret: 'a secret that is long enough',
    });
    assert.equal(registered.status, 200, JSON.stringify(registered.body));
    const refused = await submit(others[0]!, 'POST', { type: 'note', content: {} });
    assert.deepEqual([refused.status, refused.body.code], [503, 'ROLE_ELSEWHERE']);
    assert.equal((await fetch(`${others[0]!.url}/health`)).status, 200);

    const first = await submit(answering, 'POST', { type: 'note', content: { n: 1 } });
    assert.equal(first.status, 200);
    await receiver.waitFor((got) => got.some(({ body }) => body.includes(first.itemHash)));
    // Who delivers needs not be the one that writes.
    const [leading, standing] = await until('one leads', async () => {
      const told = await Promise.all(others.map((one) => leads(one)));
      if (told.filter(Boolean).length !== 1) return undefined;
      return told[0] ? others : others.toReversed();
    });

    await leading!.end('SIGKILL');
    const second = await submit(answering, 'POST', { type: 'note', content: { n: 2 } });
    assert.equal(second.status, 200, 'messages are taken while nobody leads');
    await receiver.waitFor((got) => got.some(({ body }) => body.includes(second.itemHash)));
    // Nothing but what leads rejects what has waited for too long.
    const lacking = await submit(answering, 'STORE', {
      item_type: 'storage',
      item_hash: sha256Hex('nowhere'),
    });
    await until('the other one leads, and does the work', async () => {
      const { status } = await (
        await fetch(`${answering.url}/api/v0/messages/${lacking.itemHash}/status`)
      ).json();
      return (await leads(standing!)) && status === 'rejected';
    });
  });

  // 5 CPU seconds.
  test('a process whose connections are all taken by readers goes on to say that it lives, and leads', async () => {
    await using where = await place();
    const node = await where.start('answer,write', { SKERRY_CORE_RATE_LIMITS: 'no' });
    const { pool } = where.database;
    const stop = new AbortController();
    const blocker = await pool.connect();
    await using stack = new AsyncDisposableStack();
    stack.defer(() => {
      stop.abort();
      // With its transaction.
      blocker.release(true);
    });
    await blocker.query('begin; lock table messages in access exclusive mode');
    for (let page = 1; page <= 30; page++)
      fetch(`${node.url}/api/v0/messages.json?page=${page}`, { signal: stop.signal }).catch(() => {});
    await until('all connections that readers may have wait', async () => {
      const { rows } = await pool.query(
        "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rows[0].n >= 9;
    });
    const readLease = async () => {
      const { rows } = await pool.query(
        "select until, until > clock_timestamp() as holds from leases where name = 'write'",
      );
      assert.ok(rows[0].holds);
      return rows[0].until.getTime();
    };
    const before = await readLease();
    await until('it has renewed its lease', readLease, (one) => one > before + 1_500);
  });

  // 6 CPU seconds.
  test('more processes than the database has connections for say so before it refuses them one', async () => {
    await using where = await place();
    await where.database.pool.query(
      `alter database ${new URL(where.database.url).pathname.slice(1)} connection limit 30`,
    );
    const rolesOf = async ({ url }: NodeProcess) =>
      (await (await fetch(`${url}/health`)).json()).checks.roles;
    const first = await where.start('answer,write,deliver');
    assert.equal((await rolesOf(first)).status, 'ok');
    const second = await where.start('answer');
    for (const one of [first, second])
      await until(
        'it knows of the other',
        () => rolesOf(one),
        ({ status, reason }) =>
          status === 'degraded' &&
          /^2 processes of this node may open 34 connections to the database, which gives them 30:/.test(
            reason,
          ),
      );
  });

  test('a process with other keys is refused, and told which ones; with the keys and the files of the first it serves both', async (t) => {
    await using where = await place();
    const one = await where.start('answer,write');
    const elsewhere = join(where.home, 'elsewhere');
    await assert.rejects(where.start('answer', {}, elsewhere), /ended with 2 before it was ready/);
    const two = await where.start('answer');
    const form = new FormData();
    form.append('file', new Blob(['kept by one']), 'file');
    const added = await (
      await fetch(`${one.url}/api/v0/storage/add_file`, { method: 'POST', body: form })
    ).json();
    const read = await fetch(`${two.url}/api/v0/storage/raw/${added.hash}`);
    assert.deepEqual([read.status, await read.text()], [200, 'kept by one']);
    const info = await Promise.all(
      [one, two].map(
        async ({ url }) => (await (await fetch(`${url}/api/v0/info/public.json`)).json()).address,
      ),
    );
    assert.equal(info[0], info[1]);

    await t.test(
      'when a newer release migrates the database both end, and are not to be started again',
      async () => {
        const ends = [one, two].map(({ child }) => once(child, 'exit'));
        await where.database.pool.query(
          `insert into schema_migrations (version, name, checksum) values (9999, '9999-newer.sql', '')`,
        );
        assert.deepEqual(await Promise.all(ends), [
          [2, null],
          [2, null],
        ]);
      },
    );
  });
});
