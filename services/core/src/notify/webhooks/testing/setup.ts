import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { type Signer, signMessage } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import type { TestCore } from '../../../testing/core.ts';
import { startDeliverer } from '../delivery/deliverer.ts';
import type { SenderSettings } from '../delivery/send.ts';

/** What an endpoint got. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly atMs: number;
  readonly id: string;
}

export type Answer = (response: ServerResponse, received: Received) => void;

/** A key and a certificate for `localhost` that nobody has vouched for (PEM). */
export async function makeCertificate(): Promise<{ key: string; cert: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-webhook-'));
  const [key, cert] = [join(directory, 'key'), join(directory, 'cert')];
  const make = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
  ];
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  await promisify(execFile)('openssl', [...make, ...name, '-keyout', key, '-out', cert]);
  const pems = { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') };
  await rm(directory, { recursive: true, force: true });
  return pems;
}

/** A real HTTP server that keeps what it gets. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly Received[];
  /** How it answers from now on. */
  answer: Answer;
  /** Resolves when it has got something that fits. */
  waitFor(fits: (received: readonly Received[]) => boolean): Promise<void>;
}

export const answerWith =
  (status: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  (response) =>
    response.writeHead(status, { ...headers }).end();

export async function startReceiver(tls?: {
  readonly key: string;
  readonly cert: string;
}): Promise<Receiver> {
  const received: Received[] = [];
  let waiting: (() => void)[] = [];
  const listener: RequestListener = async (request, response) => {
    const body = await text(request);
    const id = String(request.headers['webhook-id']);
    const one = { path: request.url ?? '', headers: request.headers, body, atMs: Date.now(), id };
    received.push(one);
    receiver.answer(response, one);
    for (const wake of waiting.splice(0)) wake();
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: tls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    received,
    answer: answerWith(204),
    async waitFor(fits) {
      while (!fits(received)) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    async [Symbol.asyncDispose]() {
      waiting = [];
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return receiver;
}

/** Lets a test's node call the test's servers, which are never late. */
export const LOCAL: SenderSettings = {
  allowHttp: true,
  allowedAddresses: ['127.0.0.0/8', '::1'],
  timeoutMs: 60_000,
};

/** Plans and delivers for a test's node. */
export const deliverFor = ({ rooms }: TestCore, options: { readonly backlogMax?: number } = {}) =>
  startDeliverer({ ...rooms, log: createLogger('core', 'fatal'), ...options });

export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** Registers a webhook; gives its id. */
export async function register(
  core: TestCore,
  signer: Signer,
  content: Readonly<Record<string, unknown>>,
): Promise<string> {
  const whole = { events: ['message.new'], secret: SECRET, ...content };
  const { status, body } = await core.send(signer, { type: 'WEBHOOK', content: whole }, '/webhooks');
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body.webhook_id;
}

/** Asks for something to be done with a webhook. */
export const ask = (
  core: TestCore,
  signer: Signer,
  webhookId: string,
  action: string,
  more: Readonly<Record<string, unknown>> = {},
) =>
  core.send(
    signer,
    { type: 'WEBHOOK', content: { action, webhook_id: webhookId, ...more } },
    `/webhooks/${webhookId}/${action}`,
  );

export const note = (signer: Signer, n: number | string, channel = 'notes') =>
  signMessage({ type: 'POST', channel, content: { type: 'note', content: { n } } }, signer);
