import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { readProcessorSeconds } from '../measure/processor-time.ts';

/** Answers take this long where a server hangs. */
const TIMEOUT_MS = 60_000;
/** Messages on their way at a time, at a steady rate. */
const IN_FLIGHT_MAX = 2_000;
const HEADERS = { 'content-type': 'application/json' };

/** As many connections as there are questions under way, which are used again. */
const agent = new Agent({ keepAlive: true });

/** By Node's own client: `fetch` takes twice the processor, which the servers share. */
async function read(
  url: string,
  { method = 'GET', body }: { method?: string; body?: Buffer } = {},
): Promise<string> {
  const headers = body && { ...HEADERS, 'content-length': body.length };
  const asked = request(url, { agent, method, headers, signal: AbortSignal.timeout(TIMEOUT_MS) }).end(body);
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  const said = await text(answer);
  if (answer.statusCode !== 200) throw new Error(`${url} answered ${answer.statusCode}: ${said}`);
  return said;
}

/** Sends one message; its hash, once it is acknowledged. */
async function post(url: string, body: Buffer): Promise<string> {
  const said = await read(`${url}/api/v0/messages`, { method: 'POST', body });
  return (JSON.parse(said) as { item_hash: string }).item_hash;
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
  const timesMs: number[] = [];
  let isOver = false;
  const readOn = async (reader: number) => {
    await delay((reader * everyMs) / readers);
    for (let n = reader; !isOver; n += readers) {
      const startMs = performance.now();
      await read(`${urls[n % urls.length]}/api/v0/messages/${hashes[n % hashes.length]}`);
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
