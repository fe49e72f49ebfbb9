import { networkOf } from '../../../refusals/network.ts';
import { isTlsRefusal, type TlsOutcome } from '../../figures.ts';
import type { DataPlaneLimits, DataPlaneOptions } from '../../port.ts';
import { Counts } from '../counts.ts';
import type { Routed } from '../routes.ts';
import type { Endpoints } from './wire.ts';

/** What is known of a connection for the access log. */
export interface Trace {
  hostname: string | null;
  outcome: TlsOutcome | null;
  /** It has ended. */
  readonly tell: (bytesToInstance: number, bytesToClient: number) => void;
}

/** What all TLS listeners share: limits per client and per instance, the access log, and whom they refused. */
export class TlsSide {
  readonly perClient: Counts;
  readonly perInstance: Counts<Routed>;
  readonly #access: DataPlaneOptions['access'];
  readonly #onRefused: DataPlaneOptions['onRefused'];
  #sinceTraced = 0;

  constructor(
    limits: DataPlaneLimits,
    { access, onRefused }: Pick<DataPlaneOptions, 'access' | 'onRefused'>,
  ) {
    this.perClient = new Counts(limits.maxPerClient);
    this.perInstance = new Counts<Routed>(limits.maxPerInstance);
    this.#access = access;
    this.#onRefused = onRefused;
  }

  /** Tells of it where the client was refused. */
  tellRefused({ remoteAddress }: Endpoints, reason: TlsOutcome): void {
    if (this.#onRefused && isTlsRefusal(reason))
      this.#onRefused({ network: networkOf(remoteAddress ?? ''), count: 1, protocol: 'tls', reason });
  }

  /** Follows this connection to its end, where it is one of those that the access log tells of. */
  trace(client: Endpoints): Trace | undefined {
    if (!this.#access || ++this.#sinceTraced < this.#access.every) return undefined;
    this.#sinceTraced = 0;
    const { tell } = this.#access;
    const started = performance.now();
    const startedUnixMs = Date.now();
    const { remoteAddress: clientAddress = '', remotePort: clientPort = 0 } = client;
    const trace: Trace = {
      hostname: null,
      outcome: null,
      tell: (bytesToInstance, bytesToClient) =>
        tell({
          protocol: 'tls',
          startedUnixMs,
          durationMs: Math.round(performance.now() - started),
          clientAddress,
          clientPort,
          hostname: trace.hostname,
          outcome: trace.outcome,
          bytesToInstance,
          bytesToClient,
        }),
    };
    return trace;
  }
}
