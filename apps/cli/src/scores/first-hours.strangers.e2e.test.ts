import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  CoreClient,
  createSigner,
  generatePrivateKey,
  readLatestScores,
  readPublishedScores,
} from '@skerry/client';
import { findFreePort } from '@skerry/devnet';
import { skerryPaths } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { readEnvironment } from '../config.ts';
import { startBrowser } from '../testing/browser.ts';
import { actInConsole } from '../testing/console/deeds.ts';
import { compareNodes } from '../testing/console/trust.ts';
import { catchLiar, tourConsole } from '../testing/console-tour.ts';
import { skerryHere } from '../testing/here.ts';
import { startDaemon, startUp } from '../testing/parts.ts';
import { listDescendants } from '../testing/processes.ts';
import { say, until } from '../testing/shell.ts';

/** A devnet as it comes, its first short hours, and a second core node set up by the steps of docs/operating.md. */

const HOUR = '8s';
/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
const ASK_AGAIN_MS = 500;
/** The node serves domains of owners; no name server answers it. */
const DOMAINS = {
  SKERRY_COMPUTE_DOMAIN_ZONE: 'instance.example.net',
  SKERRY_COMPUTE_DOMAIN_RESOLVERS: '127.0.0.1:9',
};

interface Row {
  readonly node_id: string;
  readonly total_score: number;
  readonly measurements: { readonly record_count: number };
}

/** Stands before a core node, and changes what it says of measurements. */
async function startLiar(target: string, lie: (row: Record<string, unknown>) => unknown) {
  const server = createServer(async (request, response) => {
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
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Hours of a few seconds keep the whole network busy, and nothing needs another one. Goes on when it is disposed. */
function pauseMonitor(up: number): Disposable {
  const { pid } = listDescendants(up).find(({ commandLine }) => /skerry\.js monitor( |$)/.test(commandLine))!;
  process.kill(pid, 'SIGSTOP');
  return { [Symbol.dispose]: () => void process.kill(pid, 'SIGCONT') };
}

test('S2, S3, S17, M13: scores out of the box, a second core node that answers like the first, and one that lies', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'skerry-first-hours-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(home, { recursive: true, force: true }));
  // The gateway's native plane is compiled once on a machine.
  const { cache: SKERRY_CACHE } = skerryPaths(readEnvironment());
  const settings = { SKERRY_HOME: home, SKERRY_CACHE, SKERRY_COMPUTE_INSTALL_PACKAGES: 'no', ...DOMAINS };
  const net = stack.use(
    await startUp(settings, [
      ...['--hour', HOUR, '--data-dir', join(home, 'net')],
      // The core node tells where they are, which the console learns from it.
      ...['--scheduler-port', String(await findFreePort()), '--status-port', String(await findFreePort())],
      ...['--gateway-port', String(await findFreePort())],
    ]),
  );
  const first = net.urls.core!;
  const skerry = async (url: string, ...args: string[]) => {
    const { code, out, err } = await skerryHere(process.env, ['--core', url, '--json', ...args]);
    return { code, err, body: JSON.parse(out || err) };
  };
  const owner = createSigner(generatePrivateKey());
  const client = new CoreClient({ url: first, signer: owner });

  await until('a score of both kinds from three hours or more', TIMEOUT_MS, async () => {
    await setTimeout(ASK_AGAIN_MS);
    const scores = (await readLatestScores({ coreUrl: first }))?.content.scores;
    const rows: Row[] = [...(scores?.ccn ?? []), ...(scores?.crn ?? [])];
    return (
      rows.length === 2 && rows.every((row) => row.measurements.record_count >= 3 && row.total_score > 0)
    );
  });
  stack.use(pauseMonitor(net.pid));
  const published = (await skerry(first, 'score', 'latest')).body;

  await t.test('S2: the scores of core and compute nodes are above zero', () => {
    for (const row of [...published.scores.ccn, ...published.scores.crn] as Row[])
      assert.ok(row.total_score > 0, `${row.node_id} has ${row.total_score}`);
  });

  await t.test('S17: the explanation of a score counts the hours that the score counts', async () => {
    const { publisher, scores } = published;
    const nodeId: string = scores.crn[0].node_id;
    const told = (await skerry(first, 'score', 'explain', nodeId, '--publisher', publisher)).body;
    // It explains the newest scores, which may be newer than those.
    const { content } = await readPublishedScores({ coreUrl: first }, told.scores);
    const row = content.scores.crn.find((one) => one.node_id === nodeId)!;
    assert.equal(told.hours.length, row.measurements.record_count);
    assert.equal(told.score.total_score, row.total_score);
  });

  const browser = stack.use(await startBrowser());
  const noDisk = sha256Hex('no disk');
  await client.storeFile(new Blob(['no disk']), 'disk', noDisk);
  const machine = await client.createInstance({
    ...{ name: 'a', cpu: 1, memory: 512, disk: 4, image: noDisk },
    ssh_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz test@skerry',
  });
  const keyFile = join(home, 'net', 'credit', 'key');
  const granted = await skerry(first, 'credit', 'grant', owner.address, '$5', '--key-file', keyFile);
  assert.equal(granted.code, 0, granted.err);

  await t.test(
    'a core node is as its signed messages say, and not by those of other schedulers',
    async () => {
      const { code, err, body } = await skerry(first, 'node', 'verify');
      assert.equal(code, 0, err || JSON.stringify(body));
      assert.equal(body.instances.said.count, 1);
      assert.ok(body.instances.verified > 1);
      await until('it has a node, which only a scheduler gives it', TIMEOUT_MS, async () => {
        await setTimeout(ASK_AGAIN_MS);
        return (await client.getInstance(machine.instance_id)).node_id !== null;
      });
      const stranger = createSigner(generatePrivateKey()).address;
      const other = await skerry(first, 'node', 'verify', '--schedulers', stranger);
      assert.equal(other.code, 1);
      assert.equal(other.body.instances.refused[0].itemHash, machine.instance_id);
    },
  );

  await t.test(
    'the console shows the network in a browser, to everybody, and marks what a core node changes',
    async () => {
      let ipv6 = '';
      await until('the machine has an address, and its owner credit', TIMEOUT_MS, async () => {
        await setTimeout(ASK_AGAIN_MS);
        ({ ipv6 } = await client.getInstance(machine.instance_id));
        const { body } = await skerry(first, 'credit', 'balance', owner.address);
        return ipv6 !== '' && body.credit_balance > 0;
      });
      const nodeId: string = published.scores.crn[0].node_id;
      const machineId = machine.instance_id;
      await tourConsole(browser, { core: first, nodeId, machineId, ipv6, owner: owner.address });
    },
  );

  await t.test(
    'in the console, a program, a file and a machine by clicking: with a wallet, and with a passkey',
    async () => {
      const { ok: isRunning } = await fetch(`${net.urls.compute}/status/check/fastapi`);
      await actInConsole(browser, { core: first, isRunning });
    },
  );

  // The steps of docs/operating.md, "A second core node".
  const second = stack.use(
    await startDaemon('core', {
      SKERRY_CORE_PEERS: first,
      SKERRY_CORE_PORT: '0',
      SKERRY_CORE_HOST: '127.0.0.1',
      SKERRY_CORE_DATA_DIR: join(home, 'second'),
      SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
    }),
  );
  let status = (await skerry(second.url, 'node', 'status')).body;
  await until('the second node is in step', TIMEOUT_MS, async () => {
    await setTimeout(ASK_AGAIN_MS);
    status = (await skerry(second.url, 'node', 'status')).body;
    return status.sync.state === 'synced';
  });
  say('a second core node is in step');

  await t.test('S3: a second core node with nothing but its peer set answers like the first', async () => {
    for (const name of ['schedulers', 'scoring_publishers', 'credit_publishers'])
      assert.deepEqual([status.trust[name].source, status.trust[name].value.length], ['peers', 1], name);
    // Messages keep coming: the two are compared at a moment when both have the same.
    let difference = (await skerry(first, 'node', 'diff', first, second.url)).body;
    await until('the two do not differ', TIMEOUT_MS, async () => {
      difference = (await skerry(first, 'node', 'diff', first, second.url)).body;
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
      Promise.all([client.getInstance(machine.instance_id), other.getInstance(machine.instance_id)]),
    );
    assert.notEqual(view.reason?.code, 'AWAITING_NODE');
    const at = String(Math.floor(Date.now() / 1000));
    const balanceAt = async (url: string) =>
      (await skerry(url, 'credit', 'balance', owner.address, '--at', at)).body;
    const balance = await untilSame('the credit', () =>
      Promise.all([balanceAt(first), balanceAt(second.url)]),
    );
    assert.ok(balance.credit_balance > 0);
    const verified = await skerry(second.url, 'score', 'verify', published.item_hash);
    assert.deepEqual([verified.code, verified.body.isSame, verified.body.refused], [0, true, []]);
  });

  await t.test('the console says whether nodes agree, and goes by the lists of its reader', () =>
    compareNodes(browser, { core: second.url, peer: first, machineId: machine.instance_id }),
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
      const { code, body } = await skerry(liar.url, 'score', 'verify', published.item_hash);
      assert.deepEqual([code, body.isSame], [1, false], what);
      assert.ok(body.refused.length > 0, what);
      await catchLiar(browser, second.url, liar.url, published.scores.crn[0].node_id);
    }
  });

  // A node that holds no machine takes its network out of the kernel when it stops.
  await client.forget([machine.instance_id]);
  const executions = `${net.urls.compute}/v2/about/executions/list`;
  await until('the machine is let go', TIMEOUT_MS, async () => {
    const held = await fetch(executions).then((answer) => answer.json());
    return Object.keys(held as object).length === 0;
  });
});
