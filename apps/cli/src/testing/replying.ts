import type { ServerResponse } from 'node:http';
import { serving } from '@skerry/kit/testing/serving';

type Reply = (url: URL, response: ServerResponse) => unknown;

/**
 * Some service that answers what a test says: JSON, or 404 where it says nothing. One that answers by itself gives the response back.
 */
export async function replying(reply: Reply) {
  const asked: string[] = [];
  const served = await serving((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const body = reply(new URL(request.url!, `http://${request.headers.host}`), response);
    if (body === response) return;
    if (body === undefined) response.statusCode = 404;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(body ?? null));
  });
  return {
    ...served,
    /** `GET /path?query`, in turn. */
    asked,
  };
}
