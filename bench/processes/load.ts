import { setTimeout as delay } from 'node:timers/promises';
import { collectGarbage } from '../measure/garbage.ts';
import { HttpClient } from '../measure/http-client.ts';
import { readProcessorSeconds } from '../measure/processor-time.ts';

/** Messages on their way at a time, at a steady rate. */
const IN_FLIGHT_MAX = 2_000;

const clients = new Map<string, HttpClient>();
/** As many connections as there are questions under way, which are used again until the process ends. */
function clientOf(url: string): HttpClient {
  const client = clients.get(url) ?? new HttpClient(url);
  clients.set(url, client);
  return client;
}

/** Sends one message; its hash, once it is acknowledged. */
async function post(url: string, body: Buffer): Promise<string> {
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

/** Sends at a steady rate, whenever the answers come. Resolves when all are acknowledged. */
async function postSteadily(urls: readonly string[], bodies: readonly Buffer[], rate: number): Promise<void> {
  const startMs = performance.now();
  const under = new Set<Promise<unknown>>();
  for (const [n, body] of bodies.entries()) {
    const waitMs = startMs + (n * 1_000) / rate - performance.now();
    if (waitMs > 1) await delay(waitMs);
    if (under.size >= IN_FLIGHT_MAX) await Promise.race(under);
    const sent: Promise<unknown> = post(urls[n % urls.length]!, body).finally(() => under.delete(sent));
    under.add(sent);
  }
  await Promise.all(under);
}

interface Reading {
  readonly hashes: readonly string[];
  readonly readers: number;
  /** Between the beginnings of two reads of one reader, as long as the answers come sooner. */
  readonly everyMs: number;
}

/** Reads messages by hash while others are sent at a steady rate. Milliseconds of each read. */
export async function readWhile(
  urls: readonly string[],
  { hashes, readers, everyMs }: Reading,
  { bodies, rate }: { readonly bodies: readonly Buffer[]; readonly rate: number },
): Promise<number[]> {
  collectGarbage();
  const timesMs: number[] = [];
  let isOver = false;
  const readOn = async (reader: number) => {
    await delay((reader * everyMs) / readers);
    for (let n = reader; !isOver; n += readers) {
      const startMs = performance.now();
      await clientOf(urls[n % urls.length]!).ask(`/api/v0/messages/${hashes[n % hashes.length]}`);
      const tookMs = performance.now() - startMs;
      timesMs.push(tookMs);
      if (tookMs < everyMs) await delay(everyMs - tookMs);
    }
  };
  const reading = Promise.all(Array.from({ length: readers }, (_, reader) => readOn(reader)));
  try {
    await Promise.race([postSteadily(urls, bodies, rate), reading]);
  } finally {
    isOver = true;
  }
  await reading;
  return timesMs;
}
