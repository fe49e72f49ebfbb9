import { Agent, type OutgoingHttpHeaders, request } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { VERSION } from '@skerry/kit';
import type pg from 'pg';
import { signDelivery } from '../../services/core/src/notify/webhooks/delivery/sign.ts';
import { eventIdOf } from '../../services/core/src/notify/webhooks/event-id.ts';

/** Requests under way at once. */
export const CALLERS = 64;
/** Events that are read, and deliveries that are planned, in one transaction. */
const PAGE = 1_000;
/** Outcomes in one statement. */
const OUTCOMES = 500;

interface Post {
  readonly seq: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

const SECRET = ['a secret'];

function postOf(seq: number, timeMs: number, data: object): Post {
  const body = JSON.stringify({
    type: 'message.new',
    timestamp: new Date(timeMs).toISOString(),
    data: { ...data, cursor: String(seq) },
  });
  const id = eventIdOf('bare', seq, timeMs);
  const timestamp = Math.floor(Date.now() / 1000);
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': `Skerry-Webhooks/${VERSION}`,
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signDelivery(SECRET, id, timestamp, body),
  };
  return { seq, headers, body };
}

/** Sends from so many callers what `next` gives, until it gives nothing more. `undefined`: not yet. */
async function sendAll(url: string, next: () => Post | undefined | null, sent: (post: Post) => void) {
  const agent = new Agent({ keepAlive: true });
  const send = ({ headers, body }: Post) =>
    new Promise<void>((resolve, reject) => {
      const call = request(url, { method: 'POST', agent, headers }, (answer) => {
        answer.resume();
        answer.once('end', resolve);
      });
      call.once('error', reject);
      call.end(body);
    });
  const call = async () => {
    for (let post = next(); post !== null; post = next()) {
      if (post) {
        await send(post);
        sent(post);
      } else await turn();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  agent.destroy();
}

/** The bare client: a POST of the same bytes to the same server, nothing kept, the id and the signature always the same. */
export async function callBare(url: string, count: number, data: object): Promise<void> {
  const post = postOf(10_000, Date.now(), data);
  let left = count;
  await sendAll(
    url,
    () => (left-- > 0 ? post : null),
    () => {},
  );
}

/** A table like that of deliveries, which is nobody else's. */
export const createKept = (pool: pg.Pool) =>
  pool.query('create table bench_deliveries (like webhook_deliveries including all)');

/** Pages of events, each with its deliveries written. */
async function* plan(pool: pg.Pool, after: number, count: number) {
  for (let from = after; from < after + count; from += PAGE) {
    const client = await pool.connect();
    try {
      await client.query('begin');
      const { rows } = await client.query<{ seq: number; data: object; time_ms: number }>(
        'select seq, data, time_ms from events where seq > $1 order by seq limit $2',
        [from, PAGE],
      );
      await client.query(
        `insert into bench_deliveries (webhook, seq, event, due_ms, planned_ms)
         select 0, seq, 'message.new', $2, $2 from unnest($1::bigint[]) seq`,
        [rows.map(({ seq }) => seq), Date.now()],
      );
      await client.query('commit');
      yield rows;
    } finally {
      client.release();
    }
  }
}

/**
 * What no deliverer can do without, beside the requests: a bare program reads the events, writes what is to be delivered before it
 * is, signs each body, and writes what became of it. It knows one endpoint, which takes everything; nothing is matched, limited, timed or tried again.
 * @param after the number of the event before the first
 */
export async function callKept(pool: pg.Pool, url: string, after: number, count: number): Promise<void> {
  const waiting: Post[] = [];
  const outcomes: number[] = [];
  let isPlanned = false;
  const planAll = async () => {
    try {
      for await (const rows of plan(pool, after, count)) {
        for (const { seq, data, time_ms } of rows) waiting.push(postOf(seq, time_ms, data));
        while (waiting.length > PAGE) await turn();
      }
    } finally {
      // Callers wait for no more, also where reading failed.
      isPlanned = true;
    }
  };
  let writing = Promise.resolve();
  const write = () => {
    const settled = outcomes.splice(0);
    writing = writing.then(async () => {
      await pool.query(
        `update bench_deliveries set state = 'delivered', attempts = 1, settled_ms = $2,
           log = log || jsonb_build_object('at_ms', $2::bigint, 'duration_ms', 1, 'status', 204)
         where webhook = 0 and seq = any($1)`,
        [settled, Date.now()],
      );
    });
  };
  const sending = sendAll(
    url,
    () => waiting.pop() ?? (isPlanned ? null : undefined),
    ({ seq }) => {
      outcomes.push(seq);
      if (outcomes.length >= OUTCOMES) write();
    },
  );
  await Promise.all([planAll(), sending]);
  write();
  await writing;
}
