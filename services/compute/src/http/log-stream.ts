import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { HttpServer, Logger, Standing } from '@skerry/kit';
import { AppError, OWNER_HEADERS } from '@skerry/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Keeper } from '../instances/keeper.ts';
import type { Worker } from '../instances/worker.ts';
import { type OwnerAccess, signedRequestOf } from '../owner/access.ts';

const PATH = /^\/control\/machine\/([0-9a-f]{64})\/stream_logs$/;
const FRAME_BYTES_MAX = 32 * 1024;
/** Until the first frame says who asks. */
const AUTH_LIMIT_MS = 10_000;
const STREAMS_MAX = 256;
const STREAMS_PER_CLIENT = 16;
/** Lines from before that a new reader gets. */
const PAST_LINES = 1_000;
/** A reader that does not keep up is let go rather than remembered for. */
const BACKLOG_BYTES_MAX = 4 * 1024 * 1024;
const CLOSE_REFUSED = 1008;
const CLOSE_SLOW = 1013;
const NO_BODY = new Uint8Array();

export interface LogStreamSources {
  readonly keeper: Keeper;
  readonly access: OwnerAccess;
  readonly log: Logger;
  readonly clientOf: (request: IncomingMessage) => Standing;
}

/**
 * `GET /control/machine/{ref}/stream_logs`, a WebSocket. Its first frame carries both signed parts (`{"auth":{...}}`); then
 * come the lines there were, and each new one as it is said.
 */
export function addLogStream(app: HttpServer, sources: LogStreamSources): void {
  const server = new WebSocketServer({ noServer: true, maxPayload: FRAME_BYTES_MAX });
  const held = new Map<string, number>();
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const ref = PATH.exec((request.url ?? '').split('?', 1)[0] ?? '')?.[1];
    const { key } = sources.clientOf(request);
    const own = held.get(key) ?? 0;
    if (ref === undefined || server.clients.size >= STREAMS_MAX || own >= STREAMS_PER_CLIENT) {
      socket.end(
        `HTTP/1.1 ${ref === undefined ? '404 Not Found' : '503 Service Unavailable'}\r\nConnection: close\r\n\r\n`,
      );
      return;
    }
    held.set(key, own + 1);
    socket.once('close', () => {
      const left = (held.get(key) ?? 1) - 1;
      if (left > 0) held.set(key, left);
      else held.delete(key);
    });
    server.handleUpgrade(
      request,
      socket,
      head,
      (client) => void serve(client, ref, request.url ?? '', sources),
    );
  });
  app.addHook('preClose', async () => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
}

async function serve(
  client: WebSocket,
  ref: string,
  url: string,
  { keeper, access, log }: LogStreamSources,
): Promise<void> {
  client.on('error', (error) => log.debug({ err: error }, 'a reader of logs went away'));
  try {
    const auth = await readAuth(client);
    const worker = keeper.find(ref);
    const headers = {
      [OWNER_HEADERS.publicKey]: auth['X-SignedPubKey'],
      [OWNER_HEADERS.operation]: auth['X-SignedOperation'],
    };
    const signed = { ...signedRequestOf({ headers, method: 'GET', url }, NO_BODY), isStream: true };
    if (worker) await access.permit(signed, worker.record.wanted.owner);
    else await access.identify(signed);
    if (!worker)
      throw new AppError('INSTANCE_NOT_FOUND', 'this node does not look after an instance with this id');
    client.send(JSON.stringify({ status: 'connected' }));
    await follow(client, worker);
  } catch (error) {
    const reason = error instanceof AppError ? error.message : 'the node failed';
    client.send(JSON.stringify({ status: 'failed', reason }), () => client.close(CLOSE_REFUSED));
  }
}

/** The first frame's `auth`. */
function readAuth(client: WebSocket): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new AppError('SIGNATURE_REQUIRED', 'nobody said who asks')),
      AUTH_LIMIT_MS,
    );
    client.once('close', () => clearTimeout(timer));
    client.once('message', (data) => {
      clearTimeout(timer);
      try {
        const { auth } = JSON.parse(String(data)) as { auth?: unknown };
        if (typeof auth === 'object' && auth !== null) return resolve(auth as Record<string, unknown>);
      } catch {
        // Said below.
      }
      reject(new AppError('INVALID_JSON', 'the first frame is {"auth": {...}}'));
    });
  });
}

async function follow(client: WebSocket, worker: Worker): Promise<void> {
  const say = (type: 'stdout' | 'system', message: string) => {
    if (client.bufferedAmount > BACKLOG_BYTES_MAX) client.close(CLOSE_SLOW);
    else client.send(JSON.stringify({ type, message }));
  };
  for (const { text } of await worker.console.read(PAST_LINES)) say('stdout', text);
  const { phase, reason } = worker.record.status ?? {};
  if (phase !== 'running')
    say(
      'system',
      `the instance is not running: it is ${phase ?? 'new'}${reason ? ` (${reason.message})` : ''}`,
    );
  const stop = worker.console.listen(({ text }) => say('stdout', text));
  if (!stop) throw new AppError('OVERLOADED', 'too many read the logs of this instance');
  client.once('close', stop);
}
