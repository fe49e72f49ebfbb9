import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { signMessage } from '@skerry/client';
import { withClient } from '@skerry/database';
import { databaseUrlOf, startTestServer, type TestServer } from '@skerry/database/testing';
import { createLogger, type RunningService, readConfig } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { coreConfig } from '../config.ts';
import { startCore } from '../core.ts';
import { signers } from '../testing/core.ts';

/** A core node whose database server is killed while the node starts, at one step after another. */

const log = createLogger('test', 'silent');
/** Steps of one start at which the server is killed. */
const KILLS = 4;
const START_WITHIN_MS = 120_000;
/** The keys of all messages are read by this, after the node has begun to serve. */
const READS_KEYS =
  'select item_hash, form, sender, channel, "time", sent_time, tags, noted_ms, erased, status';

/**
 * Stands before the database and is told what the node says to it, statement by statement. Where it should be killed, what was
 * said does not reach it, and all its connections end with it.
 */
async function startProxy(server: TestServer, isKilledBy: (text: string) => boolean) {
  const url = new URL(server.url);
  const path = join(decodeURIComponent(url.hostname), `.s.PGSQL.${url.port}`);
  const clients = new Set<Socket>();
  const proxy = createServer((client) => {
    const upstream = connect(path);
    clients.add(client);
    client.on('error', () => {}).on('close', () => upstream.destroy() && clients.delete(client));
    upstream.on('error', () => {}).on('close', () => client.destroy());
    client.on('data', (bytes) => {
      if (!isKilledBy(bytes.toString('latin1'))) {
        upstream.write(bytes);
        return;
      }
      process.kill(server.pid, 'SIGKILL');
      for (const one of clients) one.destroy();
    });
    upstream.pipe(client);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    url: `postgresql://${url.username}@127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      proxy.close();
      await once(proxy, 'close');
    },
  };
}

interface Status {
  readonly state: string;
  readonly messages: number;
}

async function readStatus(node: RunningService): Promise<Status> {
  const answer = await fetch(`${node.urls[0]}/api/v0/sync/status`);
  return (await answer.json()) as Status;
}

test('F1: a database that is killed at any step of the start leaves a node that becomes whole by itself', async (t) => {
  // What was acknowledged survives the kill.
  const server = await startTestServer(log, { synchronous_commit: 'on' });
  t.after(() => server[Symbol.asyncDispose]());
  const home = await mkdtemp(join(tmpdir(), 'skerry-start-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  let said = 0;
  let isKilled = false;
  let decideKill: (text: string) => boolean = () => false;
  const proxy = await startProxy(server, (text) => {
    said++;
    if (isKilled || !decideKill(text)) return false;
    isKilled = true;
    return true;
  });
  t.after(() => proxy[Symbol.asyncDispose]());

  /** As a supervisor does: a start that fails is followed by another. */
  const start = async (name: string): Promise<RunningService> => {
    const config = readConfig(coreConfig, {
      SKERRY_HOME: join(home, name),
      SKERRY_CORE_PORT: '0',
      SKERRY_CORE_HOST: '127.0.0.1',
      DATABASE_URL: databaseUrlOf(proxy.url, name),
    });
    const limit = AbortSignal.timeout(START_WITHIN_MS);
    for (;;)
      try {
        return await startCore(config, { log, signal: limit });
      } catch (error) {
        limit.throwIfAborted();
        assert.ok(isKilled, `a start failed although nothing was killed: ${(error as Error).stack}`);
      }
  };
  const waitForWhole = (node: RunningService, least: number): Promise<Status> =>
    until(
      'it is whole',
      () => readStatus(node),
      ({ state, messages }) => state === 'alone' && messages >= least,
    );
  /** It may say for a while that the database does not answer. */
  const waitForPost = async (node: RunningService, note: string): Promise<void> => {
    const { body } = signMessage({ type: 'POST', content: { type: 'note', content: note } }, signers.alice);
    const headers = { 'content-type': 'application/json' };
    const send = async () => {
      const posted = await fetch(`${node.urls[0]}/api/v0/messages`, { method: 'POST', headers, body });
      const text = await posted.text();
      assert.ok(posted.ok || posted.status === 503, text);
      return { isTaken: posted.ok, text };
    };
    await until('it takes a message', send, ({ isTaken }) => isTaken);
  };
  const createDatabase = (name: string) =>
    withClient({ connectionString: server.url }, (client) => client.query(`create database ${name}`));

  await createDatabase('dry');
  const dry = await start('dry');
  await waitForWhole(dry, 1);
  await dry[Symbol.asyncDispose]();
  const statements = said;

  const kills: (readonly [name: string, when: (text: string) => boolean])[] = Array.from(
    { length: KILLS },
    (_, kill) => {
      const at = Math.ceil((statements * (kill + 1)) / (KILLS + 1));
      return [`step_${at}_of_${statements}`, () => said >= at] as const;
    },
  );
  kills.push(['keys', (text) => text.includes(READS_KEYS)]);
  for (const [name, when] of kills) {
    await createDatabase(name);
    [said, isKilled, decideKill] = [0, false, when];
    const node = await start(name);
    try {
      let { messages } = await waitForWhole(node, 1);
      // A start of fewer statements than the dry one: what is posted makes more.
      for (let more = 0; !isKilled && more < statements; more++) await waitForPost(node, `${name} ${more}`);
      ({ messages } = await waitForWhole(node, messages));
      assert.ok(isKilled, `${name}: the server was killed`);
      // It also does its work: what it takes now is in its set.
      await waitForPost(node, name);
      await waitForWhole(node, messages + 1);
      console.log(`${name}: whole`);
    } finally {
      decideKill = () => false;
      await node[Symbol.asyncDispose]();
    }
  }
});
