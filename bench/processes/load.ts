import { HttpClient } from '../measure/http-client.ts';
import { readProcessorSeconds } from '../measure/processor-time.ts';

const clients = new Map<string, HttpClient>();
/** As many connections as there are questions under way, which are used again until the process ends. */
function clientOf(url: string): HttpClient {
  const client = clients.get(url) ?? new HttpClient(url);
  clients.set(url, client);
  return client;
}

/** Reads one message by its hash. */
export const readMessage = (url: string, hash: string): Promise<Buffer> =>
  clientOf(url).ask(`/api/v0/messages/${hash}`);

/** Sends one message; its hash, once it is acknowledged. */
export async function post(url: string, body: Buffer): Promise<string> {
  const said = await clientOf(url).ask('/api/v0/messages', { method: 'POST', body });
  return (JSON.parse(said.toString()) as { item_hash: string }).item_hash;
}

interface Spent {
  readonly seconds: number;
  /** Of all processes that this one started, on all processors. */
  readonly cpu: number;
}

/** What something takes, apart from what this process uses for it. */
export async function spend(body: () => Promise<unknown>): Promise<Spent> {
  const read = () => {
    const { user, system } = process.cpuUsage();
    return readProcessorSeconds([process.pid]) - (user + system) / 1e6;
  };
  const before = read();
  const startMs = performance.now();
  await body();
  return { seconds: (performance.now() - startMs) / 1_000, cpu: read() - before };
}

/**
 * Sends all, so many at a time, to each of the processes in turn.
 * @returns hashes, and for each message the milliseconds until it was acknowledged
 */
export async function postAll(urls: readonly string[], bodies: readonly Buffer[], senders: number) {
  const hashes: string[] = [];
  const timesMs: number[] = [];
  let next = 0;
  const send = async () => {
    while (next < bodies.length) {
      const n = next++;
      const startMs = performance.now();
      hashes.push(await post(urls[n % urls.length]!, bodies[n]!));
      timesMs.push(performance.now() - startMs);
    }
  };
  await Promise.all(Array.from({ length: senders }, send));
  return { hashes, timesMs };
}
