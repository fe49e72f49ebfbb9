import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fieldsOf } from '@skerry/protocol';

/**
 * A node that answers what a test says, by path. What a path answers in turn is a list; the last of it goes on. An error has status 404.
 * @param refusal what other paths answer, with status 404
 * @param told headers of each answer
 */
export async function answering(
  answers: Readonly<Record<string, readonly unknown[]>>,
  refusal?: object,
  told: Readonly<Record<string, string>> = {},
) {
  const asked: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const turns = new Map<string, number>();
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://node');
    asked.push(request.url!);
    headers.push(request.headers);
    const turn = turns.get(pathname) ?? 0;
    turns.set(pathname, turn + 1);
    const known = answers[pathname]?.[Math.min(turn, answers[pathname].length - 1)];
    if (known === undefined || fieldsOf(known).status === 'error') response.statusCode = 404;
    const answer = known ?? refusal;
    for (const [name, value] of Object.entries(told)) response.setHeader(name, value);
    response.setHeader('content-type', 'application/json');
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Paths with their queries. */
    asked,
    /** Of each of them. */
    headers,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
