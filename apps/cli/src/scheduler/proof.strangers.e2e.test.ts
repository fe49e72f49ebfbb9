import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CoreClient, call, createSigner, generatePrivateKey } from '@skerry/client';
import { type NodeView, SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { startPlacing } from '../testing/placing.ts';
import { until } from '../testing/shell.ts';
import { type Answer, canHoldAddresses, FakeNode, serve } from './testing/nodes.ts';

/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz';

/** A core node and a scheduler. @param settings of the scheduler, made when the core node is there */
async function startNetwork(settings: Readonly<Record<string, string>> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-proof-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const { coreUrl, schedulerUrl: url } = stack.use(await startPlacing(dir, { scheduler: settings }));
  const owner = new CoreClient({ url: coreUrl, signer: createSigner(generatePrivateKey()) });
  const listNodes = async () =>
    new Map((await call(url, SCHEDULER_API.listNodes, {})).nodes.map((one) => [one.node_id, one]));
  const owned = stack.move();
  return {
    coreUrl,
    owner,
    listNodes,
    create: async (name: string) =>
      owner.createInstance({
        ...{ name, description: '', cpu: 1, memory: 512, disk: 4, image: 'debian:12' },
        ...{ ssh_key: SSH_KEY, firewall: { allowedPorts: [22] } },
      }),
    untilNode: (nodeId: string, isIt: (node: NodeView) => boolean) =>
      until(`the scheduler knows ${nodeId}`, TIMEOUT_MS, async () => {
        const node = (await listNodes().catch(() => new Map<string, NodeView>())).get(nodeId);
        return node !== undefined && isIt(node);
      }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

test('H3: by default a stranger’s node is not asked anything, and a claim of a million cores draws no machine', async () => {
  await using network = await startNetwork();
  let asked = 0;
  await using server = await serve((_request, response) => {
    asked++;
    response.end('ok');
  });
  await using node = new FakeNode();
  await node.announce(network.coreUrl, { url: `http://127.0.0.1:${server.port}`, cpu: 1_000_000 });
  await network.untilNode(node.nodeId, () => true);
  const { instance_id: id } = await network.create('a');
  await until(
    'the machine is told why it waits',
    TIMEOUT_MS,
    async () => (await network.owner.getInstance(id)).reason?.code === 'NO_NODES',
  );
  const told = (await network.listNodes()).get(node.nodeId)!;
  assert.deepEqual([asked, told.healthy, told.reason?.code], [0, false, 'NODE_NOT_MEASURED']);
  assert.match(told.trust, /no trusted score publisher/);
  assert.equal((await network.owner.getInstance(id)).node_id, null);
});

test('H3: where all are taken, nothing is asked on this machine, and what is told is the same whatever is there', async () => {
  await using network = await startNetwork({ SKERRY_SCHEDULER_TRUST: 'all' });
  let asked = 0;
  await using server = await serve((_request, response) => {
    asked++;
    response.end('ok');
  });
  const urls = [
    `http://127.0.0.1:${server.port}`,
    'http://127.0.0.1:1',
    `http://localhost:${server.port}`,
    'http://[64:ff9b::7f00:1]',
  ];
  const prefix = '2a00:1:2:3::/64';
  const told = new Set<string>();
  for (const url of urls) {
    await using node = new FakeNode();
    await node.announce(network.coreUrl, { url, prefix });
    await network.untilNode(node.nodeId, ({ reason }) => reason?.code === 'NODE_UNREACHABLE');
    told.add((await network.listNodes()).get(node.nodeId)!.reason!.message);
  }
  assert.deepEqual([asked, told.size], [0, 1]);
});

/** Answers for a node what another one answers. */
const relay =
  (victim: FakeNode): Answer =>
  (request, response) => {
    void fetch(`${victim.url}${request.url}`).then(async (answer) => response.end(await answer.text()));
  };

test('H3: of nodes that lie about their URL or prefix none gets a machine; the one that proves both gets all', {
  skip: canHoldAddresses ? false : 'needs root on Linux',
}, async () => {
  await using network = await startNetwork({
    SKERRY_SCHEDULER_TRUST: 'all',
    SKERRY_SCHEDULER_ALLOW_PRIVATE: 'yes',
  });
  const { coreUrl } = network;
  await using stack = new AsyncDisposableStack();
  const create = () => stack.use(new FakeNode());
  const honest = await (await create().listen()).hold();

  // Who comes first with another's prefix does not have it.
  const squatter = await create().listen();
  await squatter.announce(coreUrl, { prefix: honest.prefix, cpu: 1_000 });
  await network.untilNode(squatter.nodeId, ({ reason }) => reason?.code === 'NODE_PREFIX_UNPROVED');
  await honest.announce(coreUrl);
  await network.untilNode(honest.nodeId, ({ healthy }) => healthy);

  let recorded = '';
  const seen = create();
  await seen.listen((request, response) => {
    // The first proof that it ever got from the honest node, for every question.
    if (recorded !== '') response.end(recorded);
    else
      void fetch(`${honest.url}${request.url}`).then(async (answer) => {
        recorded = await answer.text();
        response.end(recorded);
      });
  });
  const quiet = await create().listen((_request, response) => void response.end('ok'));
  const named = create();
  await named.listen((_request, response) => void response.end(JSON.stringify({ node_hash: named.nodeId })));
  const relaying = await create().listen(relay(honest));
  const elsewhere = create();
  for (const liar of [seen, quiet, named, relaying]) await liar.announce(coreUrl, { cpu: 1_000 });
  await elsewhere.announce(coreUrl, { url: honest.url, cpu: 1_000 });
  for (const liar of [seen, quiet, named, relaying, elsewhere])
    await network.untilNode(liar.nodeId, ({ reason }) => reason?.code === 'NODE_UNREACHABLE');

  for (const prefix of ['::/64', '2002:7f00:1::/64', '64:ff9b:1:7f00::/64', 'fec0::/64']) {
    const special = await create().listen();
    await special.announce(coreUrl, { prefix, cpu: 1_000 });
    await network.untilNode(special.nodeId, ({ reason }) => reason?.code === 'NODE_PREFIX_REFUSED');
  }
  const unheld = await create().listen();
  await unheld.announce(coreUrl, { cpu: 1_000 });
  await network.untilNode(unheld.nodeId, ({ reason }) => reason?.code === 'NODE_PREFIX_UNPROVED');

  for (const name of ['a', 'b', 'c']) {
    const { instance_id: id } = await network.create(name);
    await until(
      'the machine is placed',
      TIMEOUT_MS,
      async () => (await network.owner.getInstance(id)).node_id !== null,
    );
    const { node_id: nodeId, ipv6 } = await network.owner.getInstance(id);
    assert.equal(nodeId, honest.nodeId);

    // A node that has machines and announces another's network takes no name there with it.
    if (name !== 'c') continue;
    await honest.announce(coreUrl, { prefix: unheld.prefix });
    await network.untilNode(honest.nodeId, ({ reason }) => reason?.code === 'NODE_PREFIX_UNPROVED');
    assert.equal((await network.owner.getInstance(id)).ipv6, ipv6);
  }
});
