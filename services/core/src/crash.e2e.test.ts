import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CoreClient, request, signMessage } from '@skerry/client';
import { signers } from './testing.ts';

const PROCESS = fileURLToPath(new URL('./testing-process.ts', import.meta.url));
const KILLS = 5;
const WRITERS = 8;

interface RunningCore {
  readonly child: ChildProcess;
  readonly url: string;
}

async function startCore(home: string): Promise<RunningCore> {
  const child = fork(PROCESS, [], {
    env: {
      ...process.env,
      SKERRY_HOME: home,
      SKERRY_CORE_PORT: '0',
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_LOG_LEVEL: 'fatal',
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [message] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => assert.fail(`the core node ended with ${code} before it was ready`)),
  ])) as [{ urls: string[] }];
  return { child, url: message.urls[0]! };
}

async function end({ child }: RunningCore, signal: NodeJS.Signals): Promise<void> {
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/** Sends messages until the node is gone; gives the hashes that the node acknowledged. */
async function writeUntilGone(url: string): Promise<string[]> {
  const acknowledged: string[] = [];
  for (let n = 0; ; n++) {
    const { body, itemHash } = signMessage(
      { type: 'POST', channel: 'crash', content: { type: 'note', content: n } },
      signers.alice,
    );
    try {
      await request(`${url}/api/v0/messages`, { method: 'POST', body });
    } catch {
      return acknowledged;
    }
    acknowledged.push(itemHash);
  }
}

test(`kill -9 of the core node ${KILLS} times under load: what was acknowledged is there, once, and the event log has no gap`, async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-crash-'));
  t.after(() => rm(home, { recursive: true, force: true }));
  const acknowledged = new Set<string>();
  for (let kill = 0; kill < KILLS; kill++) {
    const core = await startCore(home);
    const writers = Array.from({ length: WRITERS }, () => writeUntilGone(core.url));
    // Once enough is under way, at a moment nobody chose.
    const client = new CoreClient({ url: core.url });
    const start = Number((await client.listInstances()).cursor);
    for await (const event of client.events({ cursor: String(start), signal: AbortSignal.timeout(60_000) })) {
      if (Number(event.cursor) >= start + 50 + 37 * kill) break;
    }
    await end(core, 'SIGKILL');
    for (const hashes of await Promise.all(writers)) for (const hash of hashes) acknowledged.add(hash);
  }
  const core = await startCore(home);
  const client = new CoreClient({ url: core.url });
  const found: string[] = [];
  for (let page = 1; ; page++) {
    const { messages, pagination } = await client.listMessages({ channels: 'crash', page, limit: 100 });
    found.push(...messages.map((message) => message.item_hash));
    if (page >= pagination.total_pages) break;
  }
  const last = Number((await client.listInstances()).cursor);
  let expected = 0;
  for await (const event of client.events({ cursor: '0', signal: AbortSignal.timeout(60_000) })) {
    assert.equal(Number(event.cursor), ++expected);
    if (expected === last) break;
  }
  await end(core, 'SIGTERM');
  t.diagnostic(`${acknowledged.size} messages acknowledged over ${KILLS} kills, ${found.length} found`);
  assert.ok(acknowledged.size > KILLS * 50);
  assert.equal(new Set(found).size, found.length, 'none twice');
  assert.deepEqual(
    [...acknowledged].filter((hash) => !found.includes(hash)),
    [],
  );
  assert.equal(last, found.length, 'one event for each message');
});
