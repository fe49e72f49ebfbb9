import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { createTestCore, signers } from '../../../testing/core.ts';
import type { PeerLink } from '../link.ts';
import { linkTo } from '../testing/setup.ts';
import { createSource, note, round } from '../testing/waiting.ts';
import { START_MS } from './failures.ts';

/** What a node with this peer logs. */
async function createNode(stack: AsyncDisposableStack, link: PeerLink) {
  const lines: { readonly level: number; readonly msg: string; readonly peer?: string }[] = [];
  const time = { uptimeMs: 0 };
  const log = createLogger('core', 'info', { write: (line) => void lines.push(JSON.parse(line)) });
  const core = stack.use(await createTestCore({ peers: [link], uptime: () => time.uptimeMs, log }));
  const told = () =>
    lines.filter(({ peer, level }) => peer === link.name && level >= 40).map(({ msg }) => msg);
  return { core, time, told };
}

test("that a node's own database is away is no fault of a peer: its log does not name one", async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 3);
  const { core, told } = await createNode(
    stack,
    linkTo('peer', () => source),
  );
  assert.ok(await round(core));
  await source.send(signers.alice, note(9));
  await core.loseDatabase();
  for (let n = 0; n < 3; n++) assert.equal(await round(core), false);
  const [peer = assert.fail()] = core.rooms.sync.syncer.view().peers;
  assert.deepEqual([told(), peer.failure], [[], 'DATABASE_UNAVAILABLE']);
});

test('a database that a peer says is away is its own', async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 3);
  const link = linkTo('peer', () => source);
  const fetchMessages = async () => {
    throw new AppError('DATABASE_UNAVAILABLE', 'the peer returned 503');
  };
  const { core, told } = await createNode(stack, { ...link, fetchMessages });
  assert.equal(await round(core), false);
  const [peer = assert.fail()] = core.rooms.sync.syncer.view().peers;
  assert.deepEqual(
    [told(), peer.state, peer.failure],
    [['cannot stay in step with a peer'], 'failing', 'DATABASE_UNAVAILABLE'],
  );
});

test('a peer that nobody reached yet is told once a start is over, and one that was reached at once', async () => {
  await using stack = new AsyncDisposableStack();
  const source = await createSource(stack, 1);
  const link = linkTo('peer', () => source);
  let isAway = true;
  const greet: PeerLink['greet'] = (signal) => {
    if (isAway) throw new AppError('UPSTREAM_UNAVAILABLE', 'it is away');
    return link.greet(signal);
  };
  const late = await createNode(stack, { ...link, greet: async (signal) => greet(signal) });
  const early = await createNode(stack, { ...link, greet: async (signal) => greet(signal) });
  assert.equal(await round(late.core), false);
  assert.deepEqual(late.told(), []);
  late.time.uptimeMs = START_MS;
  for (let n = 0; n < 2; n++) assert.equal(await round(late.core), false);
  assert.deepEqual(late.told(), ['cannot stay in step with a peer']);
  isAway = false;
  assert.ok(await round(early.core));
  isAway = true;
  assert.equal(await round(early.core), false);
  assert.deepEqual(early.told(), ['cannot stay in step with a peer']);
});
