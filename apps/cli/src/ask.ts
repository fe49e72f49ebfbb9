import type { ClientRequest, IncomingMessage } from 'node:http';
import { type AskText, type Sent, TEXT_BYTES_MAX, type TextAnswer } from '@skerry/client/request';
import { refuseUpgrade } from '@skerry/kit/refuse-upgrade';

/** Not imported: a module of all that `node:http` exports would load `fetch` as well, for its `WebSocket`. */
const OVER: Readonly<Record<string, () => Pick<typeof import('node:http'), 'request'>>> = {
  'http:': () => process.getBuiltinModule('node:http'),
  'https:': () => process.getBuiltinModule('node:https'),
};

const isBytes = (body: NonNullable<Sent['body']>): body is string | Uint8Array<ArrayBuffer> =>
  typeof body === 'string' || body instanceof Uint8Array;

async function readBytes(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > TEXT_BYTES_MAX) throw new Error(`more than ${TEXT_BYTES_MAX} bytes of text`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function unpack(bytes: Buffer): Promise<Buffer> {
  const { gunzipSync } = await import('node:zlib');
  return gunzipSync(bytes, { maxOutputLength: TEXT_BYTES_MAX });
}

async function readText(message: IncomingMessage): Promise<string> {
  const bytes = await readBytes(message);
  const isPacked = message.headers['content-encoding'] === 'gzip';
  return new TextDecoder().decode(isPacked ? await unpack(bytes) : bytes);
}

const answerOf = (request: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
    refuseUpgrade(request);
  });

/**
 * A request over `node:http`, which Node loads in a fifth of the time that `fetch` takes. A body that is neither text nor bytes is left
 * to `fetch`.
 */
export const askOverHttp: AskText = async (url, sent): Promise<TextAnswer> => {
  const { method, headers, body, signal } = sent;
  const load = OVER[new URL(url).protocol];
  if (!load || (body !== undefined && !isBytes(body))) return fetch(url, sent);
  const { request } = load();
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const open = request(url, {
    ...{ method, signal },
    headers: { accept: '*/*', 'accept-encoding': 'gzip', ...length, ...headers },
  });
  const answer = answerOf(open);
  open.end(body);
  const message = await answer;
  const { statusCode: status = 0, headers: told } = message;
  const text = await readText(message);
  return {
    ...{ status, url, ok: status >= 200 && status < 300 },
    headers: { get: (name) => told[name.toLowerCase()]?.toString() ?? null },
    text: () => Promise.resolve(text),
  };
};
