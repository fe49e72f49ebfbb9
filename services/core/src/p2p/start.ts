import { hkdfSync } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { type Host, loadOrCreateKeyFile, runLoop } from '@skerry/kit';
import { parseEvmAddress } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { Kept } from '../messages/statement.ts';
import type { CoreMetrics } from '../metrics/metrics.ts';
import type { Sync } from '../sync/sync.ts';
import type { Taker } from '../sync/take.ts';
import { listAddresses } from './addresses.ts';
import { Gossip } from './gossip.ts';

const KEY_FILE = 'p2p.key';
const SEED_PURPOSE = 'skerry p2p identity';
const SEED_BYTES = 32;
/** How often the addresses of other nodes are asked for anew. */
const MEET_INTERVAL_MS = 15_000;
/** While nobody is known, more often: nodes of one network start together. */
const FIRST_MEET_INTERVAL_MS = 1_000;

/** What gossip needs of the rooms. */
interface GossipRooms {
  readonly db: Kysely<Schema>;
  readonly sync: Sync;
  readonly taker: Taker;
  readonly metrics: CoreMetrics;
  readonly network: { addresses: () => readonly string[] };
  onKept(listener: (kept: Kept) => void): void;
}

interface GossipConfig {
  readonly gossip: boolean;
  readonly host: string;
  readonly p2pPort: number;
  readonly p2pTopic: string;
  readonly nodeListOwner: string | undefined;
  readonly dataDir: string;
  readonly peers: readonly string[];
}

/** Gossip listens where the API does. */
function listenAddressOf({ host, p2pPort }: Pick<GossipConfig, 'host' | 'p2pPort'>): string {
  const address = host === 'localhost' ? '127.0.0.1' : host;
  if (isIPv6(address)) return `/ip6/${address}/tcp/${p2pPort}`;
  return /^[0-9.]+$/.test(address) ? `/ip4/${address}/tcp/${p2pPort}` : `/dns4/${address}/tcp/${p2pPort}`;
}

/** The door of gossip; nothing where there is nobody to gossip with. */
export async function startGossip(
  rooms: GossipRooms,
  config: GossipConfig,
  { signal, log }: Host,
): Promise<AsyncDisposable> {
  const { db, sync, taker, metrics, network } = rooms;
  const { peers, p2pPort, p2pTopic, dataDir } = config;
  const nodeListOwner =
    config.nodeListOwner === undefined ? undefined : parseEvmAddress(config.nodeListOwner);
  await using stack = new AsyncDisposableStack();
  const isAlone = peers.length === 0 && p2pPort === 0 && nodeListOwner === undefined;
  if (!config.gossip || isAlone) return stack.move();
  const key = await loadOrCreateKeyFile(join(dataDir, KEY_FILE));
  const gossip = stack.use(
    new Gossip({
      settings: {
        seed: new Uint8Array(hkdfSync('sha256', key, '', SEED_PURPOSE, SEED_BYTES)),
        listen: [listenAddressOf(config)],
        topic: p2pTopic,
      },
      taker,
      reputation: sync.syncer.reputation,
      onMet: () => sync.syncer.nudge(),
      log,
    }),
  );
  network.addresses = () => gossip.addresses;
  rooms.onKept(({ brought }) => gossip.publish(brought));
  for (const [name, help] of COUNTED)
    metrics.own.watch(`skerry_gossip_${name}`, help, () => gossip.counts[name]);
  const meeting = runLoop(
    { name: 'nodes to gossip with', intervalMs: FIRST_MEET_INTERVAL_MS, signal, log },
    createMeeting(async () => {
      const addresses = await listAddresses({ db, peers, nodeListOwner }, signal);
      gossip.meet(addresses);
      return addresses.length >= Math.max(1, peers.length);
    }),
  );
  stack.defer(() => meeting);
  return stack.move();
}

const COUNTED = [
  ['connected', 'nodes that this one gossips with'],
  ['published', 'messages that were passed on'],
  ['dropped', 'messages that were left to reconciliation, since too many were on their way'],
  ['received', 'messages that came from other nodes'],
  ['forged', 'messages that nobody signed'],
] as const;

/** Often while nodes are unknown, seldom once they are known. */
function createMeeting(meet: () => Promise<boolean>): () => Promise<void> {
  let nextMs = 0;
  return async () => {
    if (performance.now() < nextMs) return;
    nextMs = (await meet()) ? performance.now() + MEET_INTERVAL_MS : 0;
  };
}
