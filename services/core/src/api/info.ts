import type { Socket } from 'node:net';
import { answer, type Handlers, spellAddress, VERSION } from '@skerry/kit';
import { AppError, parseChallenge, parseNodeUrl } from '@skerry/protocol';
import { NODE_API } from '@skerry/protocol/api/core/node';
import type { Rooms } from './rooms.ts';

/** Answered before everything that waits for its turn. */
export const HEALTH_PATHS = [NODE_API.getHealth.path, NODE_API.getApiHealth.path];

/** What a process says of itself that answers nothing else. */
export const PROCESS_PATHS: ReadonlySet<string> = new Set([
  ...HEALTH_PATHS,
  NODE_API.getVersion.path,
  NODE_API.getRootVersion.path,
  NODE_API.getMetrics.path,
  NODE_API.getDeployedMetrics.path,
]);

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

type Used = Pick<Rooms, 'network' | 'settings' | 'nodeAddress' | 'proveKey' | 'trust' | 'health' | 'metrics'>;

const LOOPBACK = ['127.0.0.1', '::1'];

/** How the place is spelled that a connection leads to: by its address, and by the name that loopback has everywhere. */
function placesAt({ localAddress, localPort }: Pick<Socket, 'localAddress' | 'localPort'>): string[] {
  if (localAddress === undefined) return [];
  const address = spellAddress(localAddress);
  const hosts = [address.includes(':') ? `[${address}]` : address];
  if (LOOPBACK.includes(address)) hosts.push('localhost');
  return hosts.map((host) => parseNodeUrl(`http://${host}:${localPort}`));
}

/**
 * The place that a proof is for: one that the operator named or the one that the connection leads to, whatever the request
 * calls it. So whoever passes the question on gets a proof for another place than its own. Throws INVALID_PARAMETERS.
 */
function placeOf(asked: string | undefined, urls: readonly string[], socket: Socket): string {
  const own = [...urls, ...placesAt(socket)];
  const place = own.find((one) => one === asked) ?? own[0];
  if (place === undefined)
    throw new AppError('INVALID_PARAMETERS', 'this connection has no address to prove the key at');
  return place;
}

/**
 * What the node says of itself (specification, "Reachability check"), without touching the database; whether it can do its
 * work, with the reason where it cannot (503 tells a balancer to ask another one); what it counts, made now and then, however
 * often it is asked for.
 */
export function nodeHandlers(rooms: Used) {
  const { network, settings, nodeAddress, proveKey, trust, health, metrics } = rooms;
  const getHealth: Handlers<typeof NODE_API>['getHealth'] = async () => {
    const verdict = await health();
    const body = { ...verdict, version: VERSION };
    const { status } = verdict;
    return answer(status === 'unavailable' ? 503 : 200, body, { 'cache-control': 'no-store' });
  };
  const handlers: Handlers<typeof NODE_API> = {
    getInfo: () => ({
      node_multi_addresses: [...network.addresses()],
      name: settings.name,
      version: VERSION,
      address: nodeAddress,
      trust: trust.view(),
      services: settings.services,
    }),
    proveCoreNode({ query, request }) {
      const challenge = parseChallenge(query.challenge);
      const proof = proveKey({ challenge, place: placeOf(query.place, settings.urls, request.socket) });
      return answer(200, proof, { 'cache-control': 'no-store' });
    },
    getVersion: () => ({ version: VERSION }),
    getRootVersion: () => ({ version: VERSION }),
    getHealth,
    getApiHealth: getHealth,
    getDeployedMetrics: () => metrics.json(),
    getMetrics: async () => answer(200, await metrics.text(), { 'content-type': PROMETHEUS_TEXT }),
  };
  return handlers;
}
