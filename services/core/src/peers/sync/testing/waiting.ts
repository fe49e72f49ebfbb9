import { createTestCore, signers, type TestCore } from '../../../testing/core.ts';
import type { PeerLink } from '../link.ts';

const NOW_SECONDS = Math.floor(Date.now() / 1000);
/** In the order of their numbers; the same one is the same message. */
export const note = (n: number) => ({
  ...{ type: 'POST', content: { type: 'note', content: { n } } },
  timestamp: NOW_SECONDS + n,
  nonce: `nonce ${n}`,
});
export const signal = new AbortController().signal;
export const MINUTE_MS = 60_000;

/** A session with each peer. @returns whether all came to their ends */
export const round = (core: TestCore) => core.rooms.sync.syncer.round(signal);
/** The node's state, and each peer's. */
export const seen = (core: TestCore) => {
  const { state, peers } = core.rooms.sync.syncer.view();
  return [state, ...peers.map((peer) => peer.state)].join(' ');
};

/** A node with these peers, and its uptime, which passes as the test says. */
export async function createNode(stack: AsyncDisposableStack, peers: readonly PeerLink[], isLeading = true) {
  const time = { uptimeMs: 0 };
  const core = stack.use(
    await createTestCore({ peers, uptime: () => time.uptimeMs, isLeading: () => isLeading }),
  );
  return { core, time };
}

/** A peer with so many messages. */
export async function createSource(stack: AsyncDisposableStack, messages: number): Promise<TestCore> {
  const source = stack.use(await createTestCore());
  for (let n = 0; n < messages; n++) await source.send(signers.alice, note(n));
  return source;
}
