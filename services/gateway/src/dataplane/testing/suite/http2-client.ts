import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Instance, World } from './world.ts';

type Handler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

export function serveHttp2(instance: Instance, handler: Handler): void {
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on('error', () => {});
    handler(stream, headers);
  });
  instance.handle = (socket) => void server.emit('connection', socket);
}

/** A client that knows beforehand that HTTP/2 is spoken. */
export async function openHttp2(
  world: World,
): Promise<Disposable & { readonly session: ClientHttp2Session }> {
  const session = connect(`http://127.0.0.1:${world.ports.http}`);
  session.on('error', () => {});
  await once(session, 'connect');
  return { session, [Symbol.dispose]: () => session.destroy() };
}
