import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { CoreClient, createSigner, generatePrivateKey, readPublishedScores } from '@skerry/client';
import { serving } from '@skerry/kit/testing/serving';
import { startBrowser } from '../testing/browser.ts';
import { actInConsole } from '../testing/console/deeds.ts';
import { compareNodes } from '../testing/console/trust.ts';
import { catchLiar, tourConsole } from '../testing/console-tour.ts';
import { ask, createOwner, letGo, playFirstHours, type Row, untilPlaced } from '../testing/first-hours.ts';
import { startDaemon } from '../testing/parts.ts';
import { say, until } from '../testing/shell.ts';

/** A devnet as it comes, its first short hours, and a second core node set up by the steps of docs/operating.md. */

/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
const ASK_AGAIN_MS = 500;

/** Stands before a core node, and changes what it says of measurements. */
const startLiar = (target: string, lie: (row: Record<string, unknown>) => unknown) =>
  serving(async (request, response) => {
    const inner = await fetch(`${target}${request.url}`).catch(() => undefined);
    if (!inner) return void response.destroy();
    let body = Buffer.from(await inner.arrayBuffer());
    if (request.url!.includes('/messages.json') && request.url!.includes('metrics')) {
      const page = JSON.parse(body.toString()) as { messages: Record<string, unknown>[] };
      const messages = page.messages.map((row, at) => (at === 0 ? lie(row) : row));
      body = Buffer.from(JSON.stringify({ ...page, messages }));
    }
    response.writeHead(inner.status, {
      'content-type': inner.headers.get('content-type') ?? '',
      'access-control-allow-origin': '*',
    });
    response.end(body);
  });

test('S2, S3, S17, M13: scores out of the box, a second core node that answers like the first, and one that lies', async (t) => {
  await using stack = new AsyncDisposableStack();
  const hours = await playFirstHours(stack);
  const { home, first, published } = hours;

  await t.test('S2: the scores of core and compute nodes are above zero', () => {
    for (const row of [...published.scores.ccn, ...published.scores.crn] as Row[])
      assert.ok(row.total_score > 0, `${row.node_id} has ${row.total_score}`);
  });

  await t.test('S17: the explanation of a score counts the hours that the score counts', async () => {
    const { publisher, scores } = published;
    const nodeId: string = scores.crn[0].node_id;
    const told = (await ask(first, 'score', 'explain', nodeId, '--publisher', publisher)).body;
    // It explains the newest scores, which may be newer than those.
    const { content } = await readPublishedScores({ coreUrl: first }, told.scores);
    const row = content.scores.crn.find((one) => one.node_id === nodeId)!;
    assert.equal(told.hours.length, row.measurements.record_count);
    assert.equal(told.score.total_score, row.total_score);
  });

  const browser = stack.use(await startBrowser());
  const owner = await createOwner(hours);
  const { client, machineId } = owner;

  await t.test(
    'a core node is as its signed messages say, and not by those of other schedulers',
    async () => {
      const { code, err, body } = await ask(first, 'node', 'verify');
      assert.equal(code, 0, err || JSON.stringify(body));
      assert.equal(body.instances.said.count, 1);
      assert.ok(body.instances.verified > 1);
      await until('it has a node, which only a scheduler gives it', TIMEOUT_MS, async () => {
        await setTimeout(ASK_AGAIN_MS);
        return (await client.getInstance(machineId)).node_id !== null;
      });
      const stranger = createSigner(generatePrivateKey()).address;
      const other = await ask(first, 'node', 'verify', '--schedulers', stranger);
      assert.equal(other.code, 1);
      assert.equal(other.body.instances.refused[0].itemHash, machineId);
    },
  );

  await t.test(
    'the console shows the network in a browser, to everybody, and marks what a core node changes',
    async () => {
      const ipv6 = await untilPlaced(hours, owner);
      const nodeId: string = published.scores.crn[0].node_id;
      await tourConsole(browser, { core: first, nodeId, machineId, ipv6, owner: owner.address });
    },
  );

  await t.test(
    'in the console, a program, a file and a machine by clicking: with a wallet, and with a passkey',
    async () => {
      const { ok: isRunning } = await fetch(`${hours.urls.compute}/status/check/fastapi`);
      await actInConsole(browser, { core: first, isRunning });
    },
  );

  // What docs/operating.md, "Other core nodes", says of a new node.
  const second = stack.use(
    await startDaemon('core', {
      SKERRY_CORE_PEERS: first,
      SKERRY_CORE_PORT: '0',
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_CORE_DATA_DIR: join(home, 'second'),
      SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
    }),
  );
  let status = (await ask(second.url, 'node', 'status')).body;
  await until('the second node is in step', TIMEOUT_MS, async () => {
    await setTimeout(ASK_AGAIN_MS);
    status = (await ask(second.url, 'node', 'status')).body;
    return status.sync.state === 'synced';
  });
  say('a second core node is in step');

  await t.test('S3: a second core node with nothing but its peer set answers like the first', async () => {
    for (const name of ['schedulers', 'scoring_publishers', 'credit_publishers'])
      assert.deepEqual([status.trust[name].source, status.trust[name].value.length], ['peers', 1], name);
    // Messages keep coming: the two are compared at a moment when both have the same.
    let difference = (await ask(first, 'node', 'diff', first, second.url)).body;
    await until('the two do not differ', TIMEOUT_MS, async () => {
      difference = (await ask(first, 'node', 'diff', first, second.url)).body;
      return difference.same;
    });
    assert.deepEqual([difference.differing_trust, difference.differing_parts], [[], []]);
    const other = new CoreClient({ url: second.url });
    // So it is with what is told of the machine, and with charges that are on their way.
    const untilSame = async <T>(what: string, read: () => Promise<[T, T]>): Promise<T> => {
      let said!: [T, T];
      await until(`both say the same of ${what}`, TIMEOUT_MS, async () => {
        said = await read();
        return isDeepStrictEqual(...said);
      });
      return said[1];
    };
    const view = await untilSame('the machine', () =>
      Promise.all([client.getInstance(machineId), other.getInstance(machineId)]),
    );
    assert.notEqual(view.reason?.code, 'AWAITING_NODE');
    const at = String(Math.floor(Date.now() / 1000));
    const balanceAt = async (url: string) =>
      (await ask(url, 'credit', 'balance', owner.address, '--at', at)).body;
    const balance = await untilSame('the credit', () =>
      Promise.all([balanceAt(first), balanceAt(second.url)]),
    );
    assert.ok(balance.credit_balance > 0);
    const verified = await ask(second.url, 'score', 'verify', published.item_hash);
    assert.deepEqual([verified.code, verified.body.isSame, verified.body.refused], [0, true, []]);
  });

  await t.test('the console says whether nodes agree, and goes by the lists of its reader', () =>
    compareNodes(browser, { core: second.url, peer: first, machineId: machineId }),
  );

  await t.test('M13: a core node that changes one byte, or makes up who measured, is caught', async () => {
    const lies: Record<string, (row: Record<string, unknown>) => unknown> = {
      'one byte': (row) => ({
        ...row,
        item_content: String(row.item_content).replace('"version"', '"versjon"'),
      }),
      'another sender': (row) => ({ ...row, sender: owner.address }),
    };
    for (const [what, lie] of Object.entries(lies)) {
      await using liar = await startLiar(second.url, lie);
      const { code, body } = await ask(liar.url, 'score', 'verify', published.item_hash);
      assert.deepEqual([code, body.isSame], [1, false], what);
      assert.ok(body.refused.length > 0, what);
      await catchLiar(browser, second.url, liar.url, published.scores.crn[0].node_id);
    }
  });

  await letGo(hours, owner);
});
