import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { CoreClient, request, signMessage } from '@skerry/client';
import { signers } from '../../../testing/core.ts';
import { startNode } from '../../../testing/node.ts';
import { answerWith, SECRET, startReceiver } from './setup.ts';

const WRITERS = 4;
/** For what has to come in the end. */
const LIMIT_MS = 240_000;
/** Deliveries that are seen before each kill, at least. */
const BETWEEN_KILLS = 40;

const SETTINGS = {
  SKERRY_CORE_WEBHOOK_ALLOW_HTTP: 'yes',
  SKERRY_CORE_WEBHOOK_ALLOW_ADDRESSES: '127.0.0.0/8',
  SKERRY_CORE_WEBHOOK_TIMEOUT_MS: '10000',
};

const startCore = (home: string) => startNode(home, undefined, SETTINGS);

async function writeUntilGone(url: string): Promise<void> {
  for (let n = 0; ; n++) {
    const draft = { type: 'POST', channel: 'crash', content: { type: 'note', content: n } };
    try {
      await request(`${url}/api/v0/messages`, {
        method: 'POST',
        body: signMessage(draft, signers.alice).body,
      });
    } catch {
      return;
    }
  }
}

interface CrashReport {
  readonly events: number;
  readonly attempts: number;
  readonly missing: readonly string[];
  /** Cursors that came under more than one id, or ids that came with more than one cursor. */
  readonly confused: readonly string[];
}

/** Kills a real core node while it delivers, starts it again, and says what arrived in the end of all events since the webhook was there. */
async function crashWhileDelivering(kills: number): Promise<CrashReport> {
  const home = await mkdtemp(join(tmpdir(), 'skerry-webhook-crash-'));
  await using receiver = await startReceiver();
  // Some fail at first, so that retries are under way, too.
  const failedOnce = new Set<string>();
  receiver.answer = (response, { id }) => {
    const isFirst = Number(id.split('_')[1]) % 29 === 0 && !failedOnce.has(id);
    failedOnce.add(id);
    answerWith(isFirst ? 500 : 204)(response, receiver.received[0]!);
  };
  // What a node tells of itself at its start may have come before there was a webhook.
  let since = '0';
  try {
    for (let kill = 0; kill < kills; kill++) {
      await using core = await startCore(home);
      if (kill === 0) {
        const content = { url: receiver.url, events: ['message.new'], secret: SECRET };
        const { body } = signMessage({ type: 'WEBHOOK', content }, signers.alice);
        await request(`${core.url}/api/v0/webhooks`, { method: 'POST', body });
        since = String((await new CoreClient({ url: core.url }).listInstances()).cursor);
      }
      const writers = Array.from({ length: WRITERS }, () => writeUntilGone(core.url));
      const before = receiver.received.length;
      // At a moment nobody chose: the process may be planning, claiming, sending or writing.
      await receiver.waitFor((all) => all.length >= before + BETWEEN_KILLS + 13 * (kill % 7));
      await core.end('SIGKILL');
      await Promise.all(writers);
    }
    await using core = await startCore(home);
    const client = new CoreClient({ url: core.url });
    const last = Number((await client.listInstances()).cursor);
    const cursors: string[] = [];
    for await (const event of client.events({ cursor: since, signal: AbortSignal.timeout(LIMIT_MS) })) {
      if (event.kind === 'message') cursors.push(event.cursor);
      if (Number(event.cursor) === last) break;
    }
    const idsOf = () => {
      const byCursor = new Map<string, Set<string>>();
      for (const { id, body } of receiver.received) {
        const { cursor } = (JSON.parse(body) as { data: { cursor: string } }).data;
        byCursor.set(cursor, (byCursor.get(cursor) ?? new Set()).add(id));
      }
      return byCursor;
    };
    let deadline: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      deadline = setTimeout(resolve, LIMIT_MS);
    });
    await Promise.race([late, receiver.waitFor(() => idsOf().size >= cursors.length)]);
    clearTimeout(deadline);
    await core.end('SIGTERM');
    const byCursor = idsOf();
    const ids = new Set(receiver.received.map(({ id }) => id));
    const confused = [...byCursor].filter(([, own]) => own.size > 1).map(([cursor]) => cursor);
    return {
      events: cursors.length,
      attempts: receiver.received.length,
      missing: cursors.filter((cursor) => !byCursor.has(cursor)),
      confused: ids.size === byCursor.size ? confused : [...confused, `${ids.size} ids`],
    };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Every event arrives, under one id, however often the node is killed while it delivers. */
export async function deliverDespiteKills(t: TestContext, kills: number): Promise<void> {
  const { events, attempts, missing, confused } = await crashWhileDelivering(kills);
  t.diagnostic(`${events} events, ${attempts} attempts over ${kills} kills, ${missing.length} missing`);
  assert.ok(events > kills * BETWEEN_KILLS);
  assert.deepEqual([missing, confused], [[], []]);
}
