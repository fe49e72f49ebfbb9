import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { type AskText, type Sent, TEXT_BYTES_MAX, type TextAnswer } from '@skerry/client/request';
import { refuseUpgrade } from '@skerry/kit/refuse-upgrade';

/** Whoever takes nothing of a file for so long takes no more: what sends it in parts looks how far it came. */
const STALLED_MS = 300_000;

/** Not imported: a module of all that `node:http` exports would load `fetch` as well, for its `WebSocket`. */
const OVER: Readonly<Record<string, () => Pick<typeof import('node:http'), 'request'>>> = {
  'http:': () => process.getBuiltinModule('node:http'),
  'https:': () => process.getBuiltinModule('node:https'),
};

type Body = NonNullable<Sent['body']>;
type Plain = Exclude<Body, FormData>;

const isPlain = (body: Body): body is Plain =>
  typeof body === 'string' || body instanceof Uint8Array || body instanceof Blob;

/** What is said of a body, as fetch says it. */
function headersOf(body: Plain | undefined): Record<string, string | number> {
  if (body === undefined) return {};
  if (!(body instanceof Blob)) return { 'content-length': Buffer.byteLength(body) };
  return { 'content-length': body.size, ...(body.type === '' ? {} : { 'content-type': body.type }) };
}

/** Sends what may be a file that is larger than memory. Whoever has answered takes no more. */
async function sendBlob(open: ClientRequest, body: Blob, stalledMs: number): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  for (const event of ['response', 'close']) open.once(event, () => over.abort());
  const stalled = setTimeout(
    () => open.destroy(new Error(`no more of the file was taken for ${stalledMs / 1000} seconds`)),
    stalledMs,
  );
  try {
    for await (const chunk of body.stream()) {
      if (signal.aborted) return;
      if (!open.write(chunk)) await once(open, 'drain', { signal });
      stalled.refresh();
    }
    open.end();
  } catch (error) {
    if (!signal.aborted) open.destroy(error as Error);
  } finally {
    clearTimeout(stalled);
  }
}

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

async function readWhole(message: IncomingMessage): Promise<Buffer> {
  const bytes = await readBytes(message);
  return message.headers['content-encoding'] === 'gzip' ? unpack(bytes) : bytes;
}

const answerOf = (request: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
    refuseUpgrade(request);
  });

/**
 * A request over `node:http`, which Node loads in a fifth of the time that `fetch` takes, and which waits for an answer for as long as it
 * is told: `fetch` waits five minutes, and a node that replaces a disk takes longer. A form is left to `fetch`.
 */
export const askOverHttp: AskText = (url, sent) => askWithin(STALLED_MS, url, sent);

/** @param stalledMs how long nothing of a file may be taken */
export async function askWithin(stalledMs: number, url: string, sent: Sent): Promise<TextAnswer> {
  const { method, headers, body, signal } = sent;
  const load = OVER[new URL(url).protocol];
  if (!load || (body !== undefined && !isPlain(body))) return fetch(url, sent);
  const { request } = load();
  const open = request(url, {
    ...{ method, signal },
    headers: { accept: '*/*', 'accept-encoding': 'gzip', ...headersOf(body), ...headers },
  });
  const answer = answerOf(open);
  if (body instanceof Blob) void sendBlob(open, body, stalledMs);
  else open.end(body);
  const message = await answer;
  const { statusCode: status = 0, headers: told } = message;
  const bytes = await readWhole(message);
  // It may have been answered before all of it was sent.
  if (body instanceof Blob) open.destroy();
  return {
    ...{ status, url, ok: status >= 200 && status < 300 },
    headers: { get: (name) => told[name.toLowerCase()]?.toString() ?? null },
    text: async () => new TextDecoder().decode(bytes),
    arrayBuffer: async () => new Uint8Array(bytes).buffer,
  };
}
