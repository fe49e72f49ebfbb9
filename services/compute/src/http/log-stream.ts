import type { IncomingMessage } from 'node:http';
import {
  type Client,
  type Held,
  type HttpServer,
  type Logger,
  type NoShare,
  Shares,
  serveAll,
  takeUpgrade,
  upgradeOf,
  YieldingShares,
} from '@skerry/kit';
import { AppError, type Fields, fieldsOf, normaliseAddress, OWNER_HEADERS } from '@skerry/protocol';
import { CONSOLE_API } from '@skerry/protocol/api/compute/machines';
import { type WebSocket, WebSocketServer } from 'ws';
import { signedRequestOf } from '../owner/access.ts';
import type { LogLine } from '../programs/sandbox/log-tail.ts';
import { type LogSource, type LogSources, openLog } from './log-source.ts';

/** For the server that has the stream: which of its routes are WebSockets. */
export const LOG_STREAM_PATHS: readonly string[] = [CONSOLE_API.streamMachineLogs.path];
const FRAME_BYTES_MAX = 32 * 1024;
/** Until the first frame says who asks: a client has it ready when it connects. */
const AUTH_LIMIT_MS = 3_000;
/** Until the other end of a stream that is refused has closed it, too. */
const CLOSE_LIMIT_MS = 1_000;
/** Streams that have not proved who asks; where there are more, the one that has waited longest for its first frame goes. */
const UNPROVED = { total: 256, reserve: 0, perClient: 4 } as const;
/**
 * Streams whose reader proved to be permitted. A client is an owner here: addresses cost nothing. Where there are no more, an owner that has
 * none takes the oldest of the one that has most.
 */
const READERS = { total: 256, reserve: 0, perClient: 16 } as const;
/** Lines from before that a new reader gets. */
const PAST_LINES = 1_000;
/** A reader that does not keep up is let go rather than remembered for. */
const BACKLOG_BYTES_MAX = 4 * 1024 * 1024;
/** What all readers may have unread, looked at so often: who keeps up has nothing unread by then. */
const BACKLOGS_BYTES_MAX = 64 * 1024 * 1024;
const BACKLOGS_LOOK_MS = 1_000;
/** Each stream is asked so often whether anybody is there: a reader that vanished would keep its place while nothing is said. */
const PING_MS = 30_000;
/** No more comes, ever. */
const CLOSE_ENDED = 1000;
const ENDED = 'it is not on this node any more';
const CLOSE_REFUSED = 1008;
/** To come back later: of who does not keep up, or yields. */
const CLOSE_LATER = 1013;
const YIELDED = 'the place goes to an owner that has none';
const NO_BODY = new Uint8Array();

export interface LogStreamSources extends LogSources {
  readonly log: Logger;
  readonly clientOf: (request: IncomingMessage) => Client;
}

/** The first frame carries both signed parts (`{"auth":{...}}`); then come the lines there were, and each new one as it is said. */
export function addLogStream(app: HttpServer, sources: LogStreamSources): void {
  const server = new WebSocketServer({ noServer: true, maxPayload: FRAME_BYTES_MAX });
  const places: Places = {
    unproved: new Shares(UNPROVED),
    readers: new YieldingShares(READERS),
    waiting: new Map(),
    quiet: new WeakSet(),
  };
  serveAll(app, CONSOLE_API, {
    streamMachineLogs({ params: { ref }, request: { raw, url }, reply }) {
      upgradeOf(reply);
      const place = takePlace(places, sources.clientOf(raw));
      if (typeof place === 'string') throw refusalOf(place);
      const { request, socket, head } = takeUpgrade(reply);
      if (socket.closed) place.release();
      else socket.once('close', () => place.release());
      server.handleUpgrade(
        request,
        socket,
        head,
        (client) => void serve({ client, ref, url, place }, places, sources),
      );
      return reply;
    },
  });
  const looking = setInterval(() => {
    for (const client of listSlowest(server.clients, BACKLOGS_BYTES_MAX)) client.terminate();
  }, BACKLOGS_LOOK_MS).unref();
  const pinging = setInterval(() => {
    for (const client of server.clients) ping(client, places.quiet);
  }, PING_MS).unref();
  app.addHook('preClose', async () => {
    clearInterval(looking);
    clearInterval(pinging);
    for (const client of server.clients) client.terminate();
    server.close();
  });
}

/** Asks whether anybody is there. Who did not answer the last time is gone. */
function ping(client: WebSocket, quiet: WeakSet<WebSocket>): void {
  if (quiet.has(client)) client.terminate();
  else if (client.readyState === client.OPEN) {
    quiet.add(client);
    client.ping();
  }
}

/** Those with the most unread, as many as it takes for the others to have no more than that together. Pure. */
export function listSlowest<T extends { readonly bufferedAmount: number }>(
  readers: Iterable<T>,
  bytesMax: number,
): T[] {
  const most = [...readers].sort((one, other) => other.bufferedAmount - one.bufferedAmount);
  let bytes = most.reduce((sum, { bufferedAmount }) => sum + bufferedAmount, 0);
  const count = most.findIndex((reader) => {
    const isEnough = bytes <= bytesMax;
    bytes -= reader.bufferedAmount;
    return isEnough;
  });
  return count < 0 ? most : most.slice(0, count);
}

interface Places {
  readonly unproved: Shares;
  readonly readers: YieldingShares;
  /** Those whose first frame has not come, the oldest first. */
  readonly waiting: Map<WebSocket, Held>;
  /** Those who were asked whether they are there, and have not answered. */
  readonly quiet: WeakSet<WebSocket>;
}

interface Visitor {
  readonly client: WebSocket;
  readonly ref: string;
  readonly url: string;
  /** Until it proved who asks. */
  readonly place: Held;
}

function takePlace({ unproved, waiting }: Places, asker: Client): ReturnType<Shares['take']> {
  const place = unproved.take(asker);
  const [oldest] = waiting;
  if (place !== 'all' || !oldest) return place;
  const [client, held] = oldest;
  waiting.delete(client);
  held.release();
  client.terminate();
  return unproved.take(asker);
}

const refusalOf = (reason: NoShare) =>
  reason === 'share'
    ? new AppError(
        'RATE_LIMITED',
        `a client may have ${UNPROVED.perClient} log streams at once that have not said who asks`,
        { details: { retry_after: AUTH_LIMIT_MS / 1_000 } },
      )
    : new AppError('OVERLOADED', 'too many log streams are opened at once; try again shortly');

/** Who does not answer a close would hold its connection for half a minute. */
const terminateSoon = (client: WebSocket) => setTimeout(() => client.terminate(), CLOSE_LIMIT_MS).unref();

/** A place among the readers instead of that among strangers. */
function becomeReader({ client, place }: Visitor, { readers }: Places, owner: string): void {
  place.release();
  const held = readers.take({ key: normaliseAddress(owner), isExempt: false }, () => {
    client.close(CLOSE_LATER, YIELDED);
    terminateSoon(client);
  });
  if (typeof held === 'string')
    throw new AppError(
      'OVERLOADED',
      `too many log readers: at most ${READERS.perClient} per owner and ${READERS.total} on this node`,
    );
  client.once('close', () => held.release());
}

/** Who left while something was waited for has closed already: what is given back at the close would not be. */
const isGone = (client: WebSocket) => client.readyState !== client.OPEN;

async function serve(visitor: Visitor, places: Places, sources: LogStreamSources): Promise<void> {
  const { client, ref, url, place } = visitor;
  client.on('error', (error) => sources.log.debug({ err: error }, 'a log reader disconnected'));
  client.on('pong', () => places.quiet.delete(client));
  places.waiting.set(client, place);
  client.once('close', () => places.waiting.delete(client));
  try {
    const auth = await readAuth(client).finally(() => places.waiting.delete(client));
    const headers = {
      [OWNER_HEADERS.publicKey]: auth['X-SignedPubKey'],
      [OWNER_HEADERS.operation]: auth['X-SignedOperation'],
    };
    const signed = { ...signedRequestOf({ headers, method: 'GET', url }, NO_BODY), isStream: true };
    const source = await openLog(sources, signed, ref);
    if (isGone(client)) return;
    becomeReader(visitor, places, source.owner);
    client.send(JSON.stringify({ status: 'connected' }));
    await follow(client, source);
  } catch (error) {
    const { message: reason, code } =
      error instanceof AppError ? error : new AppError('INTERNAL', 'the node failed');
    client.send(JSON.stringify({ status: 'failed', reason, code }), () => client.close(CLOSE_REFUSED));
    terminateSoon(client);
  }
}

/** The first frame's `auth`. */
function readAuth(client: WebSocket): Promise<Fields> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () =>
        reject(
          new AppError(
            'SIGNATURE_REQUIRED',
            `the first frame, {"auth": {...}}, did not come within ${AUTH_LIMIT_MS / 1_000} s`,
          ),
        ),
      AUTH_LIMIT_MS,
    );
    client.once('close', () => clearTimeout(timer));
    client.once('message', (data) => {
      clearTimeout(timer);
      try {
        const { auth } = fieldsOf(JSON.parse(String(data)));
        if (typeof auth === 'object' && auth !== null) return resolve(fieldsOf(auth));
      } catch {
        // Said below.
      }
      const form = '{"auth": {"X-SignedPubKey": ..., "X-SignedOperation": ...}}';
      reject(new AppError('INVALID_JSON', `the first frame must be ${form}`));
    });
  });
}

async function follow(client: WebSocket, source: LogSource): Promise<void> {
  const say = ({ type, text: message }: Pick<LogLine, 'type' | 'text'>) => {
    if (client.bufferedAmount > BACKLOG_BYTES_MAX) client.close(CLOSE_LATER);
    else client.send(JSON.stringify({ type, message }));
  };
  for (const line of await source.read(PAST_LINES)) say(line);
  if (source.silence !== undefined) say({ type: 'system', text: source.silence });
  if (isGone(client)) return;
  const stop = source.listen(say, () => {
    client.close(CLOSE_ENDED, ENDED);
    terminateSoon(client);
  });
  if (!stop) throw new AppError('OVERLOADED', 'too many readers of this log');
  client.once('close', stop);
}
