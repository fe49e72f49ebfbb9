import { text } from 'node:stream/consumers';
import { serving } from '@skerry/kit/testing/serving';

/** Changes what a node answers to a question, or gives it back as it is. @param path with its query */
// biome-ignore lint/suspicious/noExplicitAny: tests change whatever is answered
export type Lie = (path: string, answer: any) => unknown;

/** Stands before a core node, and tells lies in the place of its answers; what is sent passes as it is. */
export async function lying(target: string, lie: Lie) {
  const sent: string[] = [];
  const served = await serving(async (request, response) => {
    const { method = 'GET', url: path = '/', headers } = request;
    const isQuestion = method === 'GET';
    const body = isQuestion ? null : await text(request);
    if (body !== null) sent.push(body);
    const type = { 'content-type': headers['content-type'] ?? 'application/json' };
    const inner = await fetch(`${target}${path}`, { method, headers: type, body });
    const answer = await inner.json();
    response.writeHead(inner.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isQuestion && inner.ok ? lie(path, answer) : answer));
  });
  return {
    ...served,
    /** Bodies of what came that was no question, in turn. */
    sent,
  };
}
