import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { call } from '@skerry/client';
import type { Console } from '@skerry/console';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { renderFields } from '../output/text.ts';
import { listenForStop, SIGINT_EXIT_CODE, untilAborted } from './stop.ts';

export interface ConsoleOptions {
  readonly port?: number;
}

const HOST = '127.0.0.1';
const INFO_TIMEOUT_MS = 5_000;

/** Where the page may ask: the core node, and the services that it names. One that does not answer now may later. */
async function originsOf({ coreUrl, output }: Context): Promise<string[]> {
  const own = new URL(coreUrl).origin;
  try {
    const { services } = await call(coreUrl, NODE_API.getInfo, {}, { timeoutMs: INFO_TIMEOUT_MS });
    return [...new Set([own, ...Object.values(services ?? {}).map((url) => new URL(url).origin)])];
  } catch (error) {
    output.note(`${own} does not answer now: ${error instanceof Error ? error.message : String(error)}`);
    return [own];
  }
}

async function openFiles(context: Context): Promise<Console> {
  const { openConsole } = await import('@skerry/console');
  const console = openConsole(await originsOf(context));
  try {
    // A checkout bundles it now: what fails is told here, and not to a browser.
    await console.find('');
    return console;
  } catch (error) {
    throw new AppError(
      'INTERNAL',
      `the console cannot be made: ${String(error)}; in a checkout, run "npm ci"`,
    );
  }
}

/** The page begins at the core node that its address names. */
function placeOf(coreUrl: string, { url = '/' }: IncomingMessage): { path: string } | { redirect: string } {
  const { pathname, searchParams } = new URL(url, `http://${HOST}`);
  if (pathname !== '/' || searchParams.has('core')) return { path: pathname.slice(1) };
  return { redirect: `/?${new URLSearchParams({ core: coreUrl })}` };
}

async function answer(
  console: Console,
  coreUrl: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { answerWith } = await import('@skerry/console');
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return void response.writeHead(405, { allow: 'GET, HEAD' }).end();
  const place = placeOf(coreUrl, request);
  if ('redirect' in place) return void response.writeHead(302, { location: place.redirect }).end();
  const file = await console.find(place.path);
  if (!file)
    return void response.writeHead(404, { 'content-type': 'text/plain' }).end('there is no such file\n');
  const { headers, body } = answerWith(file, String(request.headers['accept-encoding'] ?? ''));
  response.writeHead(200, { ...headers, 'content-length': body.length });
  response.end(request.method === 'HEAD' ? undefined : body);
}

async function listen(server: Server, port: number): Promise<string> {
  server.listen(port, HOST);
  try {
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE')
      throw new AppError('PORT_IN_USE', `something else uses port ${port}; choose another with --port`);
    throw error;
  }
  return `http://${HOST}:${(server.address() as AddressInfo).port}/`;
}

/** Serves the console's files on this machine alone, until it is stopped. */
export async function showConsole(context: Context, { port = 0 }: ConsoleOptions): Promise<number> {
  const { output, coreUrl } = context;
  const files = await openFiles(context);
  using stop = listenForStop(() => process.exit(SIGINT_EXIT_CODE));
  const server = createServer((request, response) => {
    answer(files, coreUrl, request, response).catch(() => response.destroy());
  });
  const url = await listen(server, port);
  const build = await files.build();
  output.result(
    { url, core: coreUrl, build },
    renderFields([
      ['console', url],
      ['core', coreUrl],
      ['build', build],
    ]),
  );
  output.note('open it in a browser; Ctrl-C ends it');
  await untilAborted(stop.signal);
  server.close();
  server.closeAllConnections();
  return EXIT.ok;
}
