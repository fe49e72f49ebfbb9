import { type Agent, createServer, type IncomingMessage, request, type Server } from 'node:http';
import { type Instance, openClient, readAll } from './world.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
  readonly message: IncomingMessage;
  /** Our side's port: tells connections apart. */
  readonly localPort: number | undefined;
}

export interface Ask {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: Uint8Array | undefined;
  readonly agent?: Agent;
}

/** One request by Node's own client. */
export function ask(port: number, host: string, options: Ask = {}): Promise<Answer> {
  const { method = 'GET', path = '/', headers = {}, body, agent } = options;
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', port, method, path, headers: { host, ...headers }, agent: agent ?? false },
      (message) => {
        const chunks: Buffer[] = [];
        const { localPort } = message.socket;
        message.on('data', (chunk: Buffer) => chunks.push(chunk));
        message.once('error', reject);
        message.once('end', () => {
          const { statusCode = 0 } = message;
          resolve({
            status: statusCode,
            headers: message.headers,
            body: Buffer.concat(chunks),
            message,
            localPort,
          });
        });
      },
    );
    asked.once('error', reject);
    asked.end(body);
  });
}

/** Bytes as they stand, and all that comes back until the gateway closes. */
export async function askRaw(port: number, ...wire: string[]): Promise<string> {
  const client = await openClient(port);
  client.write(Buffer.from(wire.join(''), 'latin1'));
  const answer = await readAll(client);
  client.destroy();
  return answer.toString('latin1');
}

export const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

/** Makes an instance an HTTP server. */
export function serveHttp(instance: Instance, handler: Parameters<typeof createServer>[1]): Server {
  const server = createServer(handler);
  server.keepAliveTimeout = 5000;
  instance.handle = (socket) => void server.emit('connection', socket);
  return server;
}
