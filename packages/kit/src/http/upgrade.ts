import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '@skerry/protocol/forms';
import type { FastifyReply } from 'fastify';
import type { Framing } from './framing.ts';
import { patternOf } from './methods.ts';

const PROTOCOL = 'websocket';
const VERSION = '13';
const KEY = /^[+/0-9A-Za-z]{22}==$/;

/** A connection that is to become a WebSocket. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What was read behind the request already. */
  readonly head: Buffer;
}

interface Asked extends Upgrade {
  readonly response: ServerResponse;
}

const upgrades = new WeakMap<IncomingMessage, Asked>();

/**
 * Whether a request is for a WebSocket that is there. Any other upgrade is an offer, which a server may leave aside (RFC 9110, 7.8);
 * so is one that does not wait for the answer to the request before it, on whose connection nothing else can be written.
 * @param paths of routes
 */
export function asksForOneOf(
  paths: readonly string[],
  framing: Framing,
): (request: IncomingMessage) => boolean {
  const known = paths.map(patternOf);
  const isKnown = (path: string) => known.some((pattern) => pattern.test(path));
  return ({ method, url = '', headers, socket }) =>
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === PROTOCOL &&
    isKnown(url.split('?', 1)[0]!) &&
    framing.isFree(socket);
}

/**
 * Sends requests for WebSockets the way of all others: to their route, past the limits and checks of every request. What is
 * refused gets an answer in HTTP, after which the connection ends.
 */
export function routeUpgrades(server: Server): void {
  server.on('upgrade', (request: IncomingMessage, duplex, head: Buffer) => {
    const socket = duplex as Socket;
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.destroySoon());
    // HTTP does not listen to it any more; who waits for its end hears of that.
    socket.on('error', () => socket.destroy());
    upgrades.set(request, { request, socket, head, response });
    server.emit('request', request, response);
  });
}

/** The connection of a request for a WebSocket, still in the hands of HTTP. Throws UPGRADE_REQUIRED, INVALID_PARAMETERS. */
export function upgradeOf(reply: FastifyReply): Upgrade {
  const { request } = reply;
  const asked = upgrades.get(request.raw);
  if (!asked) {
    reply.header('upgrade', PROTOCOL);
    const path = request.url.split('?', 1)[0]!;
    throw new AppError('UPGRADE_REQUIRED', `${path} is a WebSocket; connect with ws:// or wss://`);
  }
  const { 'sec-websocket-key': key, 'sec-websocket-version': version } = request.headers;
  if (KEY.test(key ?? '') && version === VERSION) return asked;
  reply.header('sec-websocket-version', VERSION);
  throw new AppError(
    'INVALID_PARAMETERS',
    `a WebSocket needs the headers sec-websocket-version: ${VERSION} and sec-websocket-key with 16 bytes in base64`,
  );
}

/** Takes the connection out of the hands of HTTP: nobody answers the request any more. */
export function takeUpgrade(reply: FastifyReply): Upgrade {
  const asked = upgrades.get(reply.request.raw)!;
  reply.hijack();
  asked.response.detachSocket(asked.socket);
  return asked;
}
