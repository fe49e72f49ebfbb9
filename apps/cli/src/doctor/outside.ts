import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { call, callRaw } from '@skerry/client/call';
import { holdProofAddress } from '@skerry/compute';
import { clientKeyOf, createLogger, findListenFailure, resolveName, urlOfListener } from '@skerry/kit';
import type { AppError } from '@skerry/protocol';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { REACHABILITY_API, REACHABILITY_PATH } from '@skerry/protocol/api/core/reachability';
import type { ListenPort, RoleSettings } from '../joining/roles.ts';
import { type Attempt, isFromInside, type NameFacts, type NetworkFacts, type PortFacts } from './facts.ts';

/** What others see of this server, and what the network says of itself. Listeners are there for the moment of the question only. */

const ANSWER_MS = 10_000;
/** A core node may have a line of callers to try. */
const ATTEMPT_MS = 20_000;

/** An address that was brought here a moment ago looks like this as long as a route or a neighbour does not know it; then it is asked again. */
const NOT_YET: readonly Attempt['verdict'][] = ['NO_ANSWER', 'NO_CONNECTION'];
const SETTLES_MS = 1_000;

const STATES: Readonly<Record<string, PortFacts['state']>> = {
  EADDRINUSE: 'taken',
  EACCES: 'forbidden',
  EADDRNOTAVAIL: 'absent',
};

export async function readPort(port: ListenPort): Promise<PortFacts> {
  const failure = await findListenFailure(port.port, port.host);
  if (failure === undefined) return { ...port, state: 'free' };
  const state = STATES[failure.code ?? ''];
  if (state === undefined) throw failure;
  return { ...port, state };
}

/** The core node: what it says of itself, and what its clock shows. */
export async function readNetwork(url: string): Promise<NetworkFacts> {
  const options = { timeoutMs: ANSWER_MS };
  try {
    const info = await call(url, NODE_API.getInfo, {}, options);
    const before = Date.now();
    const answer = await callRaw(url, NODE_API.getVersion, {}, options);
    await answer.body?.cancel();
    const middle = (before + Date.now()) / 2;
    // The header is rounded down to a second.
    const theirs = Date.parse(answer.headers.get('date') ?? '') + 500;
    return {
      ...{ url, info, failure: undefined },
      clockSeconds: Number.isNaN(theirs) ? undefined : (middle - theirs) / 1000,
    };
  } catch (error) {
    return { url, info: undefined, failure: (error as AppError).message, clockSeconds: undefined };
  }
}

async function askFor(
  coreUrl: string,
  place: string,
  body: { url: string } | { ipv6_prefix: string },
  nonce: string,
) {
  try {
    const { verdict, seen_as: seenAs } = await call(
      coreUrl,
      REACHABILITY_API.checkReachability,
      { body: { ...body, nonce } },
      { timeoutMs: ATTEMPT_MS },
    );
    const isBlind = isFromInside({ seenAs }) && /^NOT_/.test(verdict);
    return isBlind
      ? unasked(place, 'the core node is on this server and sees it from inside')
      : { place, verdict, seenAs };
  } catch (error) {
    return unasked(place, `the core node cannot be asked (${(error as AppError).message})`);
  }
}

const unasked = (place: string, why: string): Attempt => ({ place, verdict: 'UNASKED', why, seenAs: null });
const createNonce = () => randomBytes(32).toString('hex');

/** Asks a core node to connect to a URL. @param listenAt undefined where the daemon has the port already */
export async function tryUrl(
  coreUrl: string,
  place: string,
  listenAt: { readonly host: string; readonly port: number } | undefined,
): Promise<Attempt> {
  const nonce = createNonce();
  const server = createServer((request, response) =>
    request.url === REACHABILITY_PATH ? response.end(nonce) : response.writeHead(404).end(),
  );
  try {
    if (listenAt) {
      server.listen(listenAt.port, listenAt.host);
      await once(server, 'listening');
    }
    return await askFor(coreUrl, place, { url: place }, nonce);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Asks a core node to connect to a compute node's own address inside a /64, which is held meanwhile; that takes root. */
export async function tryPrefix(coreUrl: string, prefix: string, isRunning: boolean): Promise<Attempt> {
  if (isRunning) return unasked(prefix, 'the node holds it');
  if (process.geteuid?.() !== 0) return unasked(prefix, 'holding one of its addresses takes root (sudo)');
  const nonce = createNonce();
  const held = await holdProofAddress(
    prefix,
    (app) => void app.get(REACHABILITY_PATH, async () => nonce),
    createLogger('doctor', 'silent'),
  );
  if (typeof held === 'string') return unasked(prefix, held);
  await using _held = held;
  const ask = () => askFor(coreUrl, prefix, { ipv6_prefix: prefix }, nonce);
  const first = await ask();
  if (!NOT_YET.includes(first.verdict)) return first;
  await delay(SETTLES_MS);
  return ask();
}

/** Below the gateway's domain every name must lead to it; nobody has this one. */
const probeName = (domain: string) => `skerry-doctor-${randomBytes(4).toString('hex')}.${domain}`;

export async function readName(name: string): Promise<NameFacts> {
  return { name, addresses: await resolveName(name).catch(() => []) };
}

/** Where a role is to be reached: each URL, and where its daemon listens for it. */
export function placesOf(
  { role, host, ports, announceUrl, domain }: RoleSettings,
  isAnnounceable: boolean,
): { readonly name: string | undefined; readonly urls: readonly { url: string; port: number }[] } {
  const [first] = ports;
  if (role === 'gateway') {
    const name = domain === undefined ? undefined : probeName(domain);
    const doors = ports.filter(({ variable }) => /_HTTPS?_PORT$/.test(variable));
    return { name, urls: doors.map(({ port }) => ({ url: `http://${name}:${port}`, port })) };
  }
  const url =
    announceUrl ??
    (role === 'compute' && isAnnounceable && first ? urlOfListener('http', host, first.port) : undefined);
  if (url === undefined || !first || !isAnnounceable) return { name: undefined, urls: [] };
  const { hostname } = new URL(url);
  // An address is no name.
  const isName = clientKeyOf(hostname.replace(/^\[|\]$/g, '')) === 'unknown' && hostname !== 'localhost';
  return { name: isName ? hostname : undefined, urls: [{ url, port: first.port }] };
}
