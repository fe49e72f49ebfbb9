import type { Socket } from 'node:net';
import type { AccessRecord, DataPlaneLimits, DataPlaneOptions, TlsOutcome } from '../port.ts';
import { Counts } from './counts.ts';

/** What is known of a connection for the access log. */
export interface Trace {
  hostname: string | null;
  outcome: TlsOutcome | null;
}

/** What all TLS listeners share: limits per client and per instance, and the access log. */
export class TlsSide {
  readonly perClient: Counts;
  readonly perInstance: Counts;
  readonly #access: DataPlaneOptions['access'];
  #sinceTraced = 0;

  constructor(limits: DataPlaneLimits, access: DataPlaneOptions['access']) {
    this.perClient = new Counts(limits.maxPerClient);
    this.perInstance = new Counts(limits.maxPerInstance);
    this.#access = access;
  }

  /** Follows this connection to its end, where it is one of those that the access log tells of. */
  trace(socket: Socket): Trace | undefined {
    if (!this.#access || ++this.#sinceTraced < this.#access.every) return undefined;
    this.#sinceTraced = 0;
    const { tell } = this.#access;
    const trace: Trace = { hostname: null, outcome: null };
    const started = performance.now();
    const startedUnixMs = Date.now();
    const { remoteAddress: clientAddress = '', remotePort: clientPort = 0 } = socket;
    socket.once('close', () => {
      const record: AccessRecord = {
        startedUnixMs,
        durationMs: Math.round(performance.now() - started),
        clientAddress,
        clientPort,
        hostname: trace.hostname,
        outcome: trace.outcome,
        bytesToInstance: trace.hostname === null ? 0 : socket.bytesRead,
        bytesToClient: trace.hostname === null ? 0 : socket.bytesWritten,
      };
      tell(record);
    });
    return trace;
  }
}
