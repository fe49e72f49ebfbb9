import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, get, request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { signMessage } from '@skerry/client';
import { createTestDatabase } from '@skerry/database/testing';
import { createLogger } from '@skerry/kit';
import { awaitReady } from '@skerry/kit/testing/processes';
import { until } from '@skerry/kit/testing/until';
import { signers } from '../testing/core.ts';

/** Core nodes as processes of their own, on one real database: how they start together, and how they stop. */

const PROCESS = fileURLToPath(new URL('../testing/process.ts', import.meta.url));
const log = createLogger('test', 'silent');
const DRAIN_MS = 10_000;
/** What the node says where requests had to be cut off. */
const CUT_OFF = 'closing requests that did not finish in time';

interface CoreProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly exited: Promise<number | null>;
  /** Warnings, all of them once it has exited. */
  readonly said: readonly string[];
}

/** Those of a test that failed are ended with its database. */
const started = new Set<ChildProcess>();

async function startProcess(databaseUrl: string, home: string, drainMs = DRAIN_MS): Promise<CoreProcess> {
  const child = fork(PROCESS, [], {
    env: {
      ...process.env,
      SKERRY_HOME: home,
      SKERRY_CORE_PORT: '0',
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_CORE_DRAIN_MS: String(drainMs),
      SKERRY_LOG_LEVEL: 'warn',
      DATABASE_URL: databaseUrl,
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  started.add(child);
  const said: string[] = [];
  createInterface({ input: child.stdout! }).on('line', (line) => said.push(line));
  const exited = once(child, 'close').then(([code]) => code as number | null);
  const lastWords = () => exited.then(() => said.join('\n'));
  const { urls } = await awaitReady<{ urls: string[] }>(child, 'the core node', { lastWords });
  return { child, url: urls[0]!, exited, said };
}

async function place() {
  const database = await createTestDatabase({ log });
  const home = await mkdtemp(join(tmpdir(), 'skerry-process-'));
  return {
    database,
    home,
    async [Symbol.asyncDispose]() {
      for (const child of started) child.kill('SIGKILL');
      started.clear();
      await database[Symbol.asyncDispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}

const note = (n: number) =>
  signMessage({ type: 'POST', channel: 'stop', content: { type: 'note', content: n } }, signers.alice);

async function ask(url: string, agent: Agent, headers = {}): Promise<IncomingMessage> {
  const [response] = (await once(get(url, { agent, headers }), 'response')) as [IncomingMessage];
  return response;
}

describe('processes of the core node', () => {
  test('two that start at the same moment on one empty database both serve; each change was made once', async () => {
    await using where = await place();
    const { url } = where.database;
    const nodes = await Promise.all([startProcess(url, where.home), startProcess(url, where.home)]);
    const headers = { 'content-type': 'application/json' };
    for (let n = 0; n < 6; n++) {
      const { body, itemHash } = note(n);
      const posted = await fetch(`${nodes[n % 2]!.url}/api/v0/messages`, { method: 'POST', headers, body });
      assert.equal(posted.status, 200);
      const found = await fetch(`${nodes[(n + 1) % 2]!.url}/api/v0/messages/${itemHash}`);
      assert.equal(found.status, 200, 'what one keeps the other answers');
    }
    await until('both compare the same set with peers', async () => {
      const { rows } = await where.database.pool.query('select count(*)::int as count from messages');
      const known = await Promise.all(
        nodes.map(async ({ url }) => (await (await fetch(`${url}/api/v0/sync/status`)).json()).messages),
      );
      return known.every((messages) => messages === rows[0].count);
    });
    const { rows } = await where.database.pool.query(
      'select version, count(*)::int as times from schema_migrations group by version',
    );
    assert.ok(rows.length > 0 && rows.every((row) => row.times === 1));
    for (const { child } of nodes) child.kill('SIGTERM');
    assert.deepEqual(await Promise.all(nodes.map((one) => one.exited)), [0, 0]);
  });

  test('SIGTERM under load: streams end whole, idle connections end, what was acknowledged is kept, exit 0', async () => {
    await using where = await place();
    const core = await startProcess(where.database.url, where.home);
    const stream = await ask(`${core.url}/api/v0/events?cursor=0`, new Agent(), {
      accept: 'text/event-stream',
    });
    const streamed = text(stream);
    const idle = new Agent({ keepAlive: true });
    (await ask(`${core.url}/api/v0/version`, idle)).resume();
    const acknowledged: string[] = [];
    let enough = () => {};
    const underWay = new Promise<void>((resolve) => {
      enough = resolve;
    });
    const write = async (writer: number) => {
      for (let n = 0; ; n++) {
        const { body, itemHash } = note(writer * 1_000_000 + n);
        const headers = { 'content-type': 'application/json' };
        try {
          const answer = await fetch(`${core.url}/api/v0/messages`, { method: 'POST', headers, body });
          assert.equal(answer.status, 200, await answer.text());
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          return;
        }
        acknowledged.push(itemHash);
        if (acknowledged.length > 100) enough();
      }
    };
    const writers = Array.from({ length: 8 }, (_, writer) => write(writer));
    await underWay;
    core.child.kill('SIGTERM');
    await Promise.all(writers);
    assert.equal(await core.exited, 0);
    assert.ok(!core.said.some((line) => line.includes(CUT_OFF)), 'nothing waited for a deadline');
    assert.match(await streamed, /\n\n$/, 'the stream ends after a whole event');
    const { rows } = await where.database.pool.query('select item_hash from messages');
    const kept = new Set(rows.map((row) => row.item_hash as string));
    assert.deepEqual(
      acknowledged.filter((hash) => !kept.has(hash)),
      [],
    );
  });

  test('a request under way when the signal arrives is answered; new connections are not taken', async () => {
    await using where = await place();
    const core = await startProcess(where.database.url, where.home);
    const { body, itemHash } = note(1);
    const slow = httpRequest(`${core.url}/api/v0/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': body.length, expect: '100-continue' },
    });
    slow.flushHeaders();
    await once(slow, 'continue');
    slow.write(body.slice(0, 10));
    core.child.kill('SIGTERM');
    const { port } = new URL(core.url);
    for (;;) {
      const probe = connect(Number(port), '127.0.0.1');
      const isTaken = await Promise.race([
        once(probe, 'connect').then(() => true),
        new Promise<boolean>((resolve) => probe.once('error', () => resolve(false))),
      ]).catch(() => false);
      probe.destroy();
      if (!isTaken) break;
    }
    const answered = once(slow, 'response') as Promise<[IncomingMessage]>;
    slow.end(body.slice(10));
    const [answer] = await answered;
    assert.deepEqual([answer.statusCode, answer.headers.connection], [200, 'close']);
    assert.equal(JSON.parse(await text(answer)).item_hash, itemHash);
    assert.equal(await core.exited, 0);
  });

  test('a client that never finishes its request holds a stop up only to the deadline', async () => {
    await using where = await place();
    const core = await startProcess(where.database.url, where.home, 200);
    const slow = httpRequest(`${core.url}/api/v0/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': 100, expect: '100-continue' },
    });
    slow.flushHeaders();
    await once(slow, 'continue');
    const cut = once(slow, 'error');
    core.child.kill('SIGTERM');
    await cut;
    assert.equal(await core.exited, 0);
    assert.ok(core.said.some((line) => line.includes(CUT_OFF)));
  });
});
