import type { Console } from '@skerry/console';
import type { HttpServer, Logger } from '@skerry/kit';
import type { NetworkService } from '@skerry/protocol/api/core/node';
import type { FastifyReply, FastifyRequest } from 'fastify';

const FOLDER = '/console/';

/** What of the console a request asks for, or undefined. Programs that ask for `/` get the contract's answer. */
function pathOf({ method, url, headers }: FastifyRequest): string | undefined {
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  const path = url.split('?', 1)[0]!;
  if (path.startsWith(FOLDER)) return path.slice(1);
  return path === '/' && headers.accept?.includes('text/html') ? '' : undefined;
}

/** Why is for the log: what cannot be loaded has paths of this machine in its message. */
const sendFailure = (reply: FastifyReply) =>
  reply
    .status(503)
    .headers({
      'content-type': 'text/html; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'",
    })
    .send(
      `<!doctype html><title>Skerry</title><p>The console cannot be shown; the log of this node says why. In a checkout, run <code>npm ci</code>.</p><p>The API is at <a href="api/v0/docs">api/v0/docs</a>.</p>`,
    );

const originsOf = (services: Partial<Record<NetworkService, string>>) => [
  ...new Set(Object.values(services).map((url) => new URL(url).origin)),
];

/**
 * Shows the console to browsers at `/`. It is no part of the contract, and nothing of it is loaded before somebody looks.
 * @param services those that the page may ask
 */
export function serveConsole(
  app: HttpServer,
  services: Partial<Record<NetworkService, string>>,
  log: Logger,
): void {
  let opening: Promise<Console> | undefined;
  /** @returns whether it has answered */
  const show = async (path: string, request: FastifyRequest, reply: FastifyReply): Promise<boolean> => {
    try {
      opening ??= import('@skerry/console').then(({ openConsole }) => openConsole(originsOf(services)));
      const file = await (await opening).find(path);
      if (!file) return false;
      const { answerWith } = await import('@skerry/console');
      const { headers, body } = answerWith(file, String(request.headers['accept-encoding'] ?? ''));
      void reply.headers(headers).send(body);
    } catch (error) {
      log.warn({ err: error }, 'the console cannot be shown');
      void sendFailure(reply);
    }
    return true;
  };
  app.addHook('onRequest', (request, reply, done) => {
    const path = pathOf(request);
    if (path === undefined) done();
    else void show(path, request, reply).then((isShown) => isShown || done());
  });
}
