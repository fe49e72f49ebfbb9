import { hkdfSync, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { acquireLock, checkPort, type Host, loadOrCreateKeyFile, runLoop } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Intake } from '../../intake/intake.ts';
import type { Committed } from '../../intake/pipeline/statement.ts';
import type { CoreMetrics } from '../../node/metrics/metrics.ts';
import type { Schema } from '../../store/schema.ts';
import type { Sync } from '../sync/sync.ts';
import { ListedNodes, listAddresses } from './addresses.ts';
import { Gossip } from './gossip.ts';
import { placesOf } from './multiaddr.ts';

const KEY_FILE = 'p2p.key';
const LOCK_FILE = 'p2p.lock';
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
  readonly intake: Pick<Intake, 'gossip'>;
  readonly metrics: CoreMetrics;
  onCommitted(listener: (committed: Committed) => void): void;
}

interface GossipConfig {
  readonly gossip: boolean;
  readonly host: string;
  readonly p2pHost: string | undefined;
  readonly p2pPort: number;
  readonly p2pAnnounce: readonly string[];
  readonly p2pTopic: string;
  readonly nodeListOwner: string | undefined;
  readonly allowPrivate: boolean;
  readonly dataDir: string;
  readonly peers: readonly string[];
}

export interface GossipDoor extends AsyncDisposable {
  /** Multiaddrs of this node. */
  addresses(): readonly string[];
}

export const NO_GOSSIP: GossipDoor = { addresses: () => [], async [Symbol.asyncDispose]() {} };

/** Whether this process is the first of those in one directory: the one that has its place in gossip. */
async function takePlace(dataDir: string): Promise<boolean> {
  // Held until the process ends. Where there are no locks, there is one process.
  const held = await acquireLock(join(dataDir, LOCK_FILE), { waitMs: 0 }).catch((error: unknown) => {
    if (error instanceof AppError) return 'unknown';
    throw error;
  });
  return held !== undefined;
}

/**
 * By which other nodes tell connections apart. Each process has its own: the first has the one that is kept in its directory,
 * the others have one for as long as they live.
 */
async function loadSeed(dataDir: string, isFirst: boolean): Promise<Uint8Array> {
  if (!isFirst) return randomBytes(SEED_BYTES);
  const key = await loadOrCreateKeyFile(join(dataDir, KEY_FILE));
  return new Uint8Array(hkdfSync('sha256', key, '', SEED_PURPOSE, SEED_BYTES));
}

/** The door of gossip; nothing where there is nobody to gossip with. */
export async function startGossip(
  rooms: GossipRooms,
  config: GossipConfig,
  { signal, log }: Host,
): Promise<GossipDoor> {
  const { db, sync, intake, metrics } = rooms;
  const { peers, p2pPort, p2pTopic, dataDir, nodeListOwner, allowPrivate } = config;
  const isAlone = peers.length === 0 && p2pPort === 0 && nodeListOwner === undefined;
  if (!config.gossip || isAlone) return NO_GOSSIP;
  // The thread would try again for ever, and nobody would be told which setting moves the port.
  const host = config.p2pHost ?? config.host;
  const isFirst = await takePlace(dataDir);
  // The others have the same settings: the port that these name, and what is announced of it, are the first one's.
  const port = isFirst ? p2pPort : 0;
  await checkPort(host, port);
  await using stack = new AsyncDisposableStack();
  const gossip = stack.use(
    new Gossip({
      settings: {
        seed: await loadSeed(dataDir, isFirst),
        listen: placesOf(host, port),
        announce: isFirst ? config.p2pAnnounce : [],
        topic: p2pTopic,
      },
      source: intake.gossip,
      reputation: sync.syncer.reputation,
      onMet: () => sync.syncer.nudge(),
      log,
    }),
  );
  rooms.onCommitted(({ toPassOn }) => gossip.publish(toPassOn));
  for (const [name, help] of COUNTED)
    metrics.own.watch(`skerry_gossip_${name}`, help, () => gossip.counts[name]);
  const listed = new ListedNodes(allowPrivate);
  const meeting = runLoop(
    { name: 'nodes to gossip with', intervalMs: FIRST_MEET_INTERVAL_MS, signal, log },
    createMeeting(async () => {
      const addresses = await listAddresses({ db, peers, nodeListOwner, listed }, signal);
      gossip.meet(addresses);
      return addresses.length >= Math.max(1, peers.length);
    }),
  );
  stack.defer(() => meeting);
  const owned = stack.move();
  return { addresses: () => gossip.addresses, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const COUNTED = [
  ['connected', 'nodes connected for gossip'],
  ['published', 'messages forwarded'],
  ['dropped', 'messages left to reconciliation because too many were queued'],
  ['received', 'messages received from other nodes'],
  ['forged', 'messages with an invalid signature'],
] as const;

/** Often while nodes are unknown, seldom once they are known. */
function createMeeting(meet: () => Promise<boolean>): () => Promise<void> {
  let nextMs = 0;
  return async () => {
    if (performance.now() < nextMs) return;
    nextMs = (await meet()) ? performance.now() + MEET_INTERVAL_MS : 0;
  };
}
