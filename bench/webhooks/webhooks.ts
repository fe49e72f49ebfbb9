import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createLogger, VERSION } from '@skerry/kit';
import { type Database, openDatabase } from '../../packages/database/src/connect.ts';
import { migrate } from '../../packages/database/src/migrate.ts';
import { createWrite } from '../../packages/database/src/write.ts';
import { appendEvents } from '../../services/core/src/notify/events/append.ts';
import { createEventLog, type EventLog } from '../../services/core/src/notify/events/log.ts';
import { startDeliverer } from '../../services/core/src/notify/webhooks/delivery/deliverer.ts';
import { createSender } from '../../services/core/src/notify/webhooks/delivery/send.ts';
import { signDelivery } from '../../services/core/src/notify/webhooks/delivery/sign.ts';
import { eventIdOf } from '../../services/core/src/notify/webhooks/event-id.ts';
import {
  createSealedBox,
  KEY_BYTES,
  type SealedBox,
} from '../../services/core/src/notify/webhooks/sealed-box.ts';
import type { Schema } from '../../services/core/src/store/schema.ts';
import { lockWrites } from '../../services/core/src/store/write-lock.ts';
import { type Figures, tell } from '../measure/figures.ts';
import { readProcessorSeconds } from '../measure/processor-time.ts';
import type { Wanted } from './receiver.ts';

const MIGRATIONS = fileURLToPath(new URL('../../services/core/src/store/migrations', import.meta.url));
const ENDPOINTS = 100;
/** Of ten endpoints one never answers. */
const DEAD_PART = 0.1;
const EVENTS_PER_SECOND = 1_000;
/** Events are written as a busy pipeline does: so many transactions a second. */
const TICKS_PER_SECOND = 20;
const BULK = 10_000;
const CALLERS = 64;
const BACKLOG_ROUNDS = 3;

async function startReceiver() {
  const child = fork(fileURLToPath(new URL('./receiver.ts', import.meta.url)));
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return {
    url: `http://127.0.0.1:${port}`,
    async readGot(): Promise<number> {
      child.send('got' satisfies Wanted);
      const [got] = (await once(child, 'message')) as [number];
      return got;
    },
    async readDelays(): Promise<number[]> {
      child.send('delays' satisfies Wanted);
      const [delaysMs] = (await once(child, 'message')) as [number[]];
      return delaysMs;
    },
    pid: child.pid!,
    close: () => child.disconnect(),
  };
}

const eventOf = (channel: string) => ({
  kind: 'message' as const,
  data: {
    item_hash: randomBytes(32).toString('hex'),
    type: 'POST',
    sender: '0x00000000000000000000000000000000000000aa',
    channel,
    timestamp: Math.floor(Date.now() / 1000),
    content_type: 'note',
  },
});

async function writeEvents({ pool }: Database<Schema>, channels: readonly string[]): Promise<void> {
  await createWrite<Schema>(pool)(async (writer) => {
    const { lastSeq } = await lockWrites(writer.trx);
    await appendEvents(writer, lastSeq, channels.map(eventOf), Date.now());
  });
}

/**
 * The bare client: a POST of the same bytes to the same server from as many callers, nothing kept, the id and the signature
 * always the same. Requests per second.
 */
async function callBare(url: string, count: number): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const body = JSON.stringify({
    type: 'message.new',
    timestamp: new Date().toISOString(),
    data: { ...eventOf('c100').data, cursor: '10000' },
  });
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': `Skerry-Webhooks/${VERSION}`,
    'webhook-id': eventIdOf('bare', 10_000, 0),
    'webhook-timestamp': '1700000000',
    'webhook-signature': signDelivery(['a secret'], 'bare', 1_700_000_000, body),
  };
  let next = 0;
  const startMs = performance.now();
  const call = async () => {
    while (next++ < count) {
      await new Promise<void>((resolve, reject) => {
        const sent = request(url, { method: 'POST', agent, headers }, (answer) => {
          answer.resume();
          answer.once('end', resolve);
        });
        sent.once('error', reject);
        sent.end(body);
      });
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  agent.destroy();
  return count / ((performance.now() - startMs) / 1000);
}

interface Run {
  readonly database: Database<Schema>;
  readonly events: EventLog;
  readonly receiver: Awaited<ReturnType<typeof startReceiver>>;
  readonly endpoints: number;
  /** The first of them: these never answer. */
  readonly dead: number;
}

async function addWebhooks({ database, receiver, endpoints, dead }: Omit<Run, 'events'>, secrets: SealedBox) {
  for (let n = 0; n < endpoints; n++) {
    const id = `webhook-${n}`;
    const url = `${receiver.url}/${n < dead ? 'dead' : 'alive'}/${n}`;
    await database.pool.query(
      `insert into webhooks (webhook_id, owner, url, events, secret, created, filters, version)
       values ($1, 'bench', $2, array['message.new'], $3, 0, $4, 1)`,
      [id, url, secrets.seal('a secret', id), { channels: [`c${n}`] }],
    );
  }
  await database.pool.query('update webhook_planner set version = 1');
}

async function waitFor({ receiver }: Run, count: number): Promise<void> {
  while ((await receiver.readGot()) < count) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Event to first attempt at a steady rate. Returns how many deliveries there were. */
async function benchSteadyRate(figures: Figures, run: Run, seconds: number): Promise<number> {
  const { database, events, endpoints, dead } = run;
  const perTick = EVENTS_PER_SECOND / TICKS_PER_SECOND;
  let written = 0;
  const startMs = performance.now();
  for (let tick = 0; tick < seconds * TICKS_PER_SECOND; tick++) {
    const waitMs = startMs + (tick * 1000) / TICKS_PER_SECOND - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    await writeEvents(
      database,
      Array.from({ length: perTick }, () => `c${written++ % endpoints}`),
    );
    events.wake();
  }
  const tookSeconds = (performance.now() - startMs) / 1000;
  const expected = Array.from({ length: written }, (_, n) => n % endpoints).filter(
    (one) => one >= dead,
  ).length;
  await waitFor(run, expected);
  const delaysMs = await run.receiver.readDelays();
  figures.group(
    `${EVENTS_PER_SECOND} events a second for ${seconds} s, ${endpoints} endpoints, ${dead} dead`,
  );
  figures.add('events', '/s', written / tookSeconds);
  figures.addTimes('event to first attempt', delaysMs, { goal: { of: 'p99', most: 1_000 } });
  figures.add('memory of the process', 'MB', process.memoryUsage().rss / 1e6);
  return expected;
}

/**
 * Deliveries per second of a backlog against the bare HTTP client.
 * @param delivered what the receiver got before
 */
async function benchBacklog(figures: Figures, run: Run, delivered: number): Promise<void> {
  const { database, events, receiver, endpoints, dead } = run;
  const rates: number[] = [];
  const bareRates: number[] = [];
  const costs: number[] = [];
  const databaseCosts: number[] = [];
  const bareCosts: number[] = [];
  let total = delivered;
  for (let round = 0; round <= BACKLOG_ROUNDS; round++) {
    const bareUsage = process.cpuUsage();
    const bare = await callBare(`${receiver.url}/bare`, BULK);
    const bareCost = costOf(bareUsage);
    total += BULK;
    await writeEvents(
      database,
      Array.from({ length: BULK }, (_, n) => `c${dead + (n % (endpoints - dead))}`),
    );
    // From here the backlog is there: to write it is not the deliverer's work.
    const [bulkMs, bulkUsage, databaseSeconds] = [performance.now(), process.cpuUsage(), readDatabase(run)];
    events.wake();
    total += BULK;
    await waitFor(run, total);
    const rate = BULK / ((performance.now() - bulkMs) / 1000);
    const cost = costOf(bulkUsage);
    const databaseCost = ((readDatabase(run) - databaseSeconds) * 1e6) / BULK;
    if (round === 0) continue;
    rates.push(rate);
    bareRates.push(bare);
    costs.push(cost);
    databaseCosts.push(databaseCost);
    bareCosts.push(bareCost);
    tell(`round ${round} of ${BACKLOG_ROUNDS}: delivered ${rate.toFixed(0)}/s`);
  }
  figures.group(`a backlog of ${BULK} deliveries`);
  figures.add(`bare HTTP client, the same POST, ${CALLERS} in parallel`, '/s', bareRates);
  figures.add('planned, signed, delivered and written', '/s', rates, {
    ratio: { to: 'bare HTTP client', values: rates.map((rate, round) => rate / bareRates[round]!) },
    goal: { of: 'ratio', least: 0.6 },
  });
  figures.add('bare HTTP client, CPU time of a POST', 'µs', bareCosts);
  figures.add('CPU time of the node for a delivery, without its database', 'µs', costs, {
    ratio: { to: 'bare HTTP client', values: costs.map((cost, round) => cost / bareCosts[round]!) },
  });
  figures.add('CPU time of its database for a delivery', 'µs', databaseCosts);
}

/** Processor seconds of the database: what this process has below it, without the receiver. */
function readDatabase({ receiver }: Run): number {
  const { user, system } = process.cpuUsage();
  return readProcessorSeconds([process.pid]) - readProcessorSeconds([receiver.pid]) - (user + system) / 1e6;
}

/** Microseconds of processor time of this process for each of a bulk. */
function costOf(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / BULK;
}

/**
 * Event to first attempt at a steady rate with some endpoints dead, then deliveries per second of a backlog against the
 * bare HTTP client.
 */
export async function benchWebhooks(figures: Figures, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string', default: '20' },
      endpoints: { type: 'string', default: String(ENDPOINTS) },
      'database-url': { type: 'string' },
    },
  });
  const endpoints = Number(values.endpoints);
  const log = createLogger('bench', 'error');
  const directory = await mkdtemp(join(tmpdir(), 'skerry-bench-'));
  const receiver = await startReceiver();
  try {
    await using database = await openDatabase<Schema>({
      databaseUrl: values['database-url'],
      dataDir: join(directory, 'postgres'),
      log,
    });
    await migrate({ pool: database.pool, directory: MIGRATIONS, log });
    const db = database.kysely;
    const secrets = createSealedBox(randomBytes(KEY_BYTES));
    const events = createEventLog(db);
    const run = { database, events, receiver, endpoints, dead: Math.round(endpoints * DEAD_PART) };
    await addWebhooks(run, secrets);
    const sender = createSender({ now: Date.now, allowHttp: true, allowedAddresses: ['127.0.0.0/8'] });
    await using _deliverer = startDeliverer({ db, events, secrets, sender, now: Date.now, log });
    await benchBacklog(figures, run, await benchSteadyRate(figures, run, Number(values.seconds)));
  } finally {
    receiver.close();
    await rm(directory, { recursive: true, force: true });
  }
}
