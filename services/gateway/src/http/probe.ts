import { once } from 'node:events';
import type { RouteFailure } from '../dataplane/port.ts';
import { connectInstance, failureOf } from '../dataplane/ts/connect.ts';
import type { Probe } from '../table/why.ts';

const TIMEOUT_MS = 2_000;
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

/** Connects to an instance's ports to see whether they answer; sends nothing. */
export class Prober {
  readonly #ports: readonly number[];
  readonly #kept = new Map<string, { atMs: number; probes: Promise<Probe[]> }>();
  #underWay = 0;

  constructor(ports: readonly number[]) {
    this.#ports = ports;
  }

  async probe(ipv6: string): Promise<readonly Probe[]> {
    const kept = this.#kept.get(ipv6);
    if (kept && performance.now() - kept.atMs < KEPT_MS) return await kept.probes;
    if (this.#underWay >= MAX_UNDER_WAY) return [];
    this.#underWay++;
    const probes = Promise.all(
      this.#ports.map(async (port) => ({ port, failure: await tryPort(ipv6, port) })),
    ).finally(() => {
      this.#underWay--;
    });
    this.#kept.delete(ipv6);
    this.#kept.set(ipv6, { atMs: performance.now(), probes });
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    return await probes;
  }
}
