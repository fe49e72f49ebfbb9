import { once } from 'node:events';
import { createServer, type RequestListener, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** Stands between the store and the server: an answer of its own for as long as `answer` gives one. */
export async function startProxy(endpoint: string, answer: () => number | 'hang up' | undefined) {
  const listener: RequestListener = async (request, response) => {
    const status = answer();
    if (status === 'hang up') return void request.socket.destroy();
    if (status !== undefined) return void response.writeHead(status).end('<Error><Code>Busy</Code></Error>');
    const body = await buffer(request);
    const headers = Object.entries(request.headers).filter(
      ([name]) => !/^(connection|expect|transfer)/.test(name),
    );
    const passed = send(`${endpoint}${request.url}`, {
      method: request.method!,
      headers: Object.fromEntries(headers),
    });
    passed.end(body);
    const [answered] = await once(passed, 'response');
    response.writeHead(answered.statusCode, answered.headers);
    answered.pipe(response);
  };
  const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
