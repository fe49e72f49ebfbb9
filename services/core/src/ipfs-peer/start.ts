import { createMetrics, type Host, type RunningService, runLoop, VERSION } from '@skerry/kit';
import { Announcer } from './announcer.ts';
import type { IpfsPeerConfig } from './config.ts';
import { CoreBlocks } from './core-blocks.ts';
import { openDoor } from './door.ts';
import { startExchange } from './exchange.ts';
import { callFirst, createPeer } from './node.ts';
import { PinList } from './pins.ts';
import { PeerRates } from './rate.ts';
import { createRouting } from './routing.ts';

const HOUR_MS = 3_600_000;
const CALL_MS = 5_000;

/** A peer of the IPFS network for one core node, in a process of its own: the node does without it. */
export async function startIpfsPeer(
  config: IpfsPeerConfig,
  { log, signal: hostSignal }: Host,
): Promise<RunningService> {
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const signal = AbortSignal.any([hostSignal, stop.signal]);
  const rates = new PeerRates(config);
  const blocks = new CoreBlocks(config.coreUrl, rates.all);
  const libp2p = stack.adopt(await createPeer(config), (node) => node.stop());
  const routing = createRouting(() => libp2p, config.routers);
  const exchange = stack.use(await startExchange({ libp2p, blocks, rates, routing }));
  const metrics = await createMetrics({ service: 'ipfs', isProcess: true });
  metrics.watch('skerry_ipfs_connections', 'Connections to IPFS peers', () => libp2p.getConnections().length);
  const health = () => ({
    status: 'ok',
    version: VERSION,
    peer: libp2p.peerId.toString(),
    connections: libp2p.getConnections().length,
  });
  const door = stack.use(await openDoor(exchange, { ...config, metrics, health }));
  const announcer = new Announcer({
    libp2p,
    pins: new PinList(config.coreUrl),
    isKept: (cid) => blocks.isKept(cid),
    everyMs: config.announceHours * HOUR_MS,
    now: () => performance.now(),
    log,
  });
  const loops = [
    runLoop({ name: 'first calls', intervalMs: CALL_MS, signal, log }, async () => {
      rates.tidy();
      await callFirst(libp2p, config.bootstrap);
    }),
    ...(config.announces
      ? [
          runLoop({ name: 'announcements', intervalMs: config.roundSeconds * 1000, signal, log }, () =>
            announcer.run(signal),
          ),
        ]
      : []),
  ];
  stack.defer(async () => {
    stop.abort();
    await Promise.all(loops);
  });
  const owned = stack.move();
  log.info({ peer: libp2p.peerId.toString() }, 'the IPFS peer is known by this id');
  return {
    urls: [door.url, ...libp2p.getMultiaddrs().map(String)],
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
