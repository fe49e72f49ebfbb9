import { createLogger } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import type { Accepted } from '../../../intake/accepted.ts';
import type { Committed } from '../../../intake/pipeline/statement.ts';
import { createTestCore, type TestCore } from '../../../testing/core.ts';
import { Reputation } from '../../sync/reputation.ts';
import { Gossip } from '../gossip.ts';

const log = createLogger('test', 'silent');

export interface TestGossip {
  readonly core: TestCore;
  readonly gossip: Gossip;
  readonly reputation: Reputation;
  /** Resolves with the next messages that become durable. */
  nextCommitted(): Promise<Committed>;
}

export interface TestGossipOptions {
  /** Of what is thought of others. */
  readonly now?: () => number;
  readonly onMet?: () => void;
}

/** A core node with gossip, on threads and connections as in a process of its own. */
export async function createTestGossip(
  stack: AsyncDisposableStack,
  seed: number,
  { now = Date.now, onMet = () => {} }: TestGossipOptions = {},
): Promise<TestGossip> {
  const core = stack.use(await createTestCore());
  const reputation = new Reputation(now);
  const gossip = stack.use(
    new Gossip({
      settings: {
        seed: new Uint8Array(32).fill(seed),
        listen: ['/ip4/127.0.0.1/tcp/0'],
        announce: [],
        topic: 'test',
      },
      source: core.rooms.intake.gossip,
      reputation,
      onMet,
      log,
    }),
  );
  let next = Promise.withResolvers<Committed>();
  core.rooms.onCommitted((committed) => {
    gossip.publish(committed.toPassOn as Accepted[]);
    next.resolve(committed);
    next = Promise.withResolvers<Committed>();
  });
  return { core, gossip, reputation, nextCommitted: () => next.promise };
}

/** Each knows the next one. */
export async function connectLine(nodes: readonly TestGossip[]): Promise<void> {
  for (const { gossip } of nodes)
    await until(
      'an address',
      () => gossip.addresses,
      ({ length }) => length > 0,
    );
  for (const [at, node] of nodes.entries()) {
    const next = nodes[at + 1];
    if (next) node.gossip.meet(next.gossip.addresses);
  }
  for (const [at, node] of nodes.entries()) {
    const expected = (at > 0 ? 1 : 0) + (at + 1 < nodes.length ? 1 : 0);
    await until(
      'its neighbours',
      () => node.gossip.counts,
      ({ connected }) => connected === expected,
    );
  }
}
