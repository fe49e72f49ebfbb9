import type { Host, Logger } from '@skerry/kit';
import type { GatewayConfig } from './config.ts';
import { createDataPlane } from './dataplane/choose.ts';
import type { DataPlaneOptions } from './dataplane/port.ts';
import { findListenHosts } from './listen-hosts.ts';
import { Refusals } from './refusals/refusals.ts';

/** A front may have the data directory of a gateway, and neither takes the other's listeners. */
const HANDOVER_SOCKETS = { gateway: 'listeners.sock', front: 'front.sock' } as const;

/** One in so many connections has its line in the sampled access log. */
const SAMPLE_EVERY = 100;

function accessOption(kind: GatewayConfig['accessLog'], log: Logger): Pick<DataPlaneOptions, 'access'> {
  if (kind === 'off') return {};
  return {
    access: {
      every: kind === 'full' ? 1 : SAMPLE_EVERY,
      tell: (record) => log.info(record, 'connection'),
      tellHttp: (record) => log.info(record, 'request'),
    },
  };
}

/**
 * The data plane of the settings, whatever it is to route, and whom it refuses. It does not listen yet.
 *
 * @param stack at its end, what is open comes to its end, and the log is told the rest
 */
export async function createPlane(
  config: GatewayConfig,
  host: Host,
  stack: AsyncDisposableStack,
  explain: DataPlaneOptions['explain'],
): Promise<Awaited<ReturnType<typeof createDataPlane>> & { readonly refusals: Refusals }> {
  const { log } = host;
  const refusals = stack.use(new Refusals(log));
  const onReplaced = () => {
    log.info('another gateway has taken over');
    host.replaced?.('another gateway has taken over');
  };
  const created = await createDataPlane(
    {
      hosts: await findListenHosts(config.host),
      httpPort: config.httpPort,
      httpsPort: config.httpsPort,
      upstreamHttpPort: config.upstreamHttpPort,
      upstreamHttpsPort: config.upstreamHttpsPort,
      explain,
      limits: {
        maxConnections: config.maxConnections,
        maxPerClient: config.maxConnectionsPerClient,
        maxPerInstance: config.maxConnectionsPerInstance,
      },
      sharePort: config.sharePort,
      quic: config.quic,
      onRefused: (refusal) => refusals.note(refusal),
      ...accessOption(config.accessLog, log),
    },
    {
      ...{ ...config, kind: config.dataPlane, log, signal: host.signal, onReplaced },
      handoverSocket: HANDOVER_SOCKETS[config.nodeUrl === undefined ? 'gateway' : 'front'],
    },
  );
  stack.defer(() => created.plane.drain(config.drainMs));
  return { ...created, refusals };
}
