import { once } from 'node:events';
import type { RouteFailure } from '../dataplane/port.ts';
import { connectInstance, failureOf } from '../dataplane/ts/connect.ts';
import { probeQuic } from '../quic/probe.ts';
import { NOT_PROBED, type Probe, type Probes } from '../table/why.ts';

/** Below what the log calls a slow request: a server that is not there is no fault of the gateway's. */
const TIMEOUT_MS = 1_500;
/** So long an answer stands: asking again and again shall not knock on an instance's door each time. */
const KEPT_MS = 2_000;
const MAX_KEPT = 1_000;
/** More at the same time are not tried: whoever asks is told of the last attempt only. */
const MAX_UNDER_WAY = 32;

async function tryPort(ipv6: string, port: number): Promise<RouteFailure | null> {
  const socket = connectInstance({ ipv6, port, timeoutMs: TIMEOUT_MS, halfOpen: false });
  try {
    await once(socket, 'connect');
    return null;
  } catch (error) {
    return failureOf(error as Error);
  } finally {
    socket.destroy();
  }
}

/** The ports of instances that are tried. */
export interface ProbedPorts {
  readonly tcp: readonly number[];
  /** Undefined where the gateway forwards no QUIC. */
  readonly quic: number | undefined;
}

/** Connects to an instance's TCP ports to see whether they answer, and sends nothing; asks for QUIC's versions at its UDP port. */
export class Prober {
  readonly #ports: ProbedPorts;
  readonly #kept = new Map<string, { atMs: number; probes: Promise<Probes> }>();
  #underWay = 0;

  constructor(ports: ProbedPorts) {
    this.#ports = ports;
  }

  async #try(ipv6: string): Promise<Probes> {
    const { tcp, quic } = this.#ports;
    const [tried, http3] = await Promise.all([
      Promise.all(tcp.map(async (port): Promise<Probe> => ({ port, failure: await tryPort(ipv6, port) }))),
      quic === undefined
        ? undefined
        : probeQuic(ipv6, quic, TIMEOUT_MS).then((failure): Probe => ({ port: quic, failure })),
    ]);
    return { tcp: tried, quic: http3 };
  }

  async probe(ipv6: string): Promise<Probes> {
    const kept = this.#kept.get(ipv6);
    if (kept && performance.now() - kept.atMs < KEPT_MS) return await kept.probes;
    if (this.#underWay >= MAX_UNDER_WAY) return NOT_PROBED;
    this.#underWay++;
    const probes = this.#try(ipv6).finally(() => {
      this.#underWay--;
    });
    this.#kept.delete(ipv6);
    this.#kept.set(ipv6, { atMs: performance.now(), probes });
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    return await probes;
  }
}
