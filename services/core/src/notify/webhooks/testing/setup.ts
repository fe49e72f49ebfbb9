import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Signer, signMessage } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import type { Certificate } from '@skerry/kit/testing/certificate';
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

export async function startReceiver(tls?: Certificate): Promise<Receiver> {
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
