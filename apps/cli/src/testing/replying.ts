import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Reply = (url: URL, response: ServerResponse) => unknown;

/**
 * Some service that answers what a test says: JSON, or 404 where it says nothing. One that answers by itself gives the response back.
 */
export async function replying(reply: Reply) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const body = reply(new URL(request.url!, `http://${request.headers.host}`), response);
    if (body === response) return;
    if (body === undefined) response.statusCode = 404;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(body ?? null));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** `GET /path?query`, in turn. */
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
