import type { Metrics } from '@skerry/kit';
import type { Indexer } from './indexer.ts';
import type { NetworkHealth } from './network.ts';

type Reading = { readonly labels: Readonly<Record<string, string>>; readonly value: number };

const secondsSince = (ms: number, nowMs: number): number => Math.max(0, (nowMs - ms) / 1000);

/** Gauges of every network that the process indexes; nothing where it indexes none. Alerts on them: docs/indexer.md. */
export function watchIndexer(
  own: Metrics,
  indexer: Pick<Indexer, 'health' | 'stallMs'>,
  now: () => number,
): void {
  const networks = (read: (health: NetworkHealth) => number | null | undefined) => (): Reading[] =>
    [...indexer.health()].flatMap(([network, health]) => {
      const value = read(health);
      return value === null || value === undefined ? [] : [{ labels: { network }, value }];
    });
  const watch = (name: string, help: string, read: Parameters<typeof networks>[0]) =>
    own.watch(`skerry_indexer_${name}`, help, networks(read), ['network']);
  watch('head_block', 'newest block that an endpoint has shown', ({ freshness }) => freshness?.head);
  watch('indexed_block', 'everything up to it is read', ({ freshness }) => freshness?.indexed);
  watch('lag_blocks', 'blocks between the two', ({ freshness }) => freshness?.lag);
  watch('head_age_seconds', 'since the time that the newest block says', ({ freshness }) =>
    freshness?.headTimestamp ? secondsSince(freshness.headTimestamp * 1000, now()) : undefined,
  );
  watch(
    'progress_age_seconds',
    'since what there is to read last moved, or was seen to be read',
    ({ freshness }) => (freshness ? secondsSince(freshness.progressAt.getTime(), now()) : undefined),
  );
  watch('stalled', '1: no progress, or no endpoint that shows the head, or the network is halted', (one) =>
    Number(one.isStalled),
  );
  watch('subscribed', '1: a server tells of new blocks; 0: the head is polled', (one) =>
    Number(one.isSubscribed),
  );
  const endpoints = (
    name: string,
    help: string,
    labels: readonly string[],
    read: (one: NetworkHealth['endpoints'][number]) => readonly Reading[],
  ) =>
    own.watch(
      `skerry_indexer_rpc_${name}`,
      help,
      () =>
        [...indexer.health()].flatMap(([network, health]) =>
          health.endpoints.flatMap((one) =>
            read(one).map(({ labels: more, value }) => ({
              labels: { network, endpoint: one.name, ...more },
              value,
            })),
          ),
        ),
      ['network', 'endpoint', ...labels],
    );
  endpoints('requests', 'HTTP requests since the start', [], (one) => [{ labels: {}, value: one.requests }]);
  endpoints('calls', 'RPC calls in them', [], (one) => [{ labels: {}, value: one.calls }]);
  endpoints('failures', 'failures since the start, by kind', ['kind'], ({ failures }) =>
    Object.entries(failures).map(([kind, value]) => ({ labels: { kind }, value })),
  );
}
