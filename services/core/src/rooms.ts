import { join } from 'node:path';
import { createSigner, type Signer } from '@skerry/client';
import {
  type ConnectionTurns,
  createWrite,
  type Database,
  type DiskReserve,
  partOf,
  type Standby,
} from '@skerry/database';
import { type Indexer, watchIndexer } from '@skerry/indexer';
import {
  createAsker,
  createClientOf,
  createReach,
  type Logger,
  loadOrCreateKeyFile,
  type RateLimitOptions,
  rateLimitsOf,
  Since,
} from '@skerry/kit';
import { createNodeProof, type NodeProofClaim, nodeIdOf, provesNode } from '@skerry/protocol';
import { Kysely, PostgresDialect } from 'kysely';
import type { Rooms, RouteSettings } from './api/rooms.ts';
import { Answers } from './api/shares/answers.ts';
import { Askers } from './api/shares/askers.ts';
import { FileReads } from './api/shares/file-reads.ts';
import { LongLists } from './api/shares/long-lists.ts';
import { createUploadPlaces } from './api/shares/places.ts';
import { type CoreConfig, peerUrlsOf } from './config.ts';
import { createImageCheck } from './intake/image-check.ts';
import { createIntake, type Intake } from './intake/intake.ts';
import { Pipeline, type PipelineOptions } from './intake/pipeline/pipeline.ts';
import type { Committed } from './intake/pipeline/statement.ts';
import type { IntakeOptions } from './intake/sources.ts';
import { createStartCheck } from './intake/start-check.ts';
import type { Verifier } from './intake/verify/verifier.ts';
import { createHealth } from './node/health/health.ts';
import type { WriteProbe } from './node/health/write-probe.ts';
import { WriteWatch } from './node/health/write-watch.ts';
import type { KeptPlace } from './node/kept-place.ts';
import { isNeededBy, KEY_FILES } from './node/key-files.ts';
import { type CoreMetrics, createCoreMetrics, watchCore, watchSync } from './node/metrics/metrics.ts';
import type { Identity } from './node/processes/member.ts';
import { type Role, takesMessages } from './node/processes/roles.ts';
import { fingerprintOf, openSealedBox } from './node/sealing-key.ts';
import { knownFromRegistry, publishVrfKeys } from './node/vrf/published-keys.ts';
import { openRandomness } from './node/vrf/randomness.ts';
import { createEventLog, type EventLog } from './notify/events/log.ts';
import { createSender, type Sender } from './notify/webhooks/delivery/send.ts';
import { registerWebhook } from './notify/webhooks/register.ts';
import type { SealedBox } from './notify/webhooks/sealed-box.ts';
import { createLearning, openTrust, type TrustConfig } from './open-trust.ts';
import { adviseOnNewest, NetworkClock } from './peers/sync/clock.ts';
import type { PeerLink } from './peers/sync/link.ts';
import { NodeSet } from './peers/sync/node-set.ts';
import type { ProvesOwn } from './peers/sync/self.ts';
import { SetFollower, type SetFollowerOptions } from './peers/sync/set-follower.ts';
import { createSync, type Sync } from './peers/sync/sync.ts';
import type { Trust } from './peers/trust/trust.ts';
import { deriveCredits } from './state/credits/derive.ts';
import { openRunners } from './state/programs/runners.ts';
import { answersOf } from './store/connections.ts';
import { createContentReader } from './store/content-reader.ts';
import type { BlobStore } from './store/files/blob-store.ts';
import type { Claims } from './store/files/claims.ts';
import type { FilesDisk } from './store/files/disk/files-disk.ts';
import { Files } from './store/files/files.ts';
import { choosePlace } from './store/files/parts/choose-place.ts';
import { Parts } from './store/files/parts/parts.ts';
import type { Pieces } from './store/files/parts/shared-place.ts';
import { Uploads } from './store/files/uploads.ts';
import { chooseIpfs } from './store/ipfs/choose-ipfs.ts';
import type { BlockSource } from './store/ipfs/gateways.ts';
import { IpfsFiles } from './store/ipfs/ipfs-files.ts';
import { createReads } from './store/reads.ts';
import type { Schema } from './store/schema.ts';

/** What the rooms stand on; it is started before them. */
export interface Ground {
  readonly database: Database<Schema>;
  readonly blobs: BlobStore;
  /** Where all processes of the node reach what has come of files; the data directory where left out. */
  readonly pieces?: Pieces;
  readonly verifier: Verifier;
  readonly indexer: Indexer;
  readonly reserve: DiskReserve;
  /** Of the directory that the blobs are in, where they are in one that may go. */
  readonly disk?: FilesDisk;
  /** How far the database has come, for the next process; nobody keeps that where left out. */
  readonly keptPlace?: KeptPlace;
  /** Whether files can be written; they can where left out. */
  readonly writeProbe?: Pick<WriteProbe, 'failure' | 'absence' | 'damaged'>;
  /** Core nodes to keep in step with. */
  readonly links: readonly PeerLink[];
  /** How often clients may ask; as the settings say where it is left out. */
  readonly limits?: RateLimitOptions;
  /** This machine's clock, milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds since whenever, never set; the process's own where left out. */
  readonly uptime?: (() => number) | undefined;
  /** In the place of gateways and peers: another way to ask for blocks of IPFS. */
  readonly blockSource?: BlockSource | undefined;
  /** Ends when the node stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Whether the metrics of the process are this node's. */
  readonly isProcess: boolean;
  readonly healthTimeoutMs?: number;
  /** Since when its parts are not well; since this process saw it where left out. */
  readonly notWellSince?: Since;
  /** Answers reads that it is fresh enough for; none where left out. */
  readonly standby?: Standby;
  /** How many processes of the node have a role; one where left out. */
  readonly countOf?: (role: Role) => number;
  /** Whether this process does what one alone does; so where left out. */
  readonly isLeading?: () => boolean;
  /** What is wrong with the processes of the node, in words; nothing is where left out. */
  readonly adviseOnProcesses?: () => string | undefined;
  /** What is wrong with the chains that the node reads, in words; nothing is where left out. */
  readonly adviseOnChains?: () => Promise<string | undefined>;
}

/** How long files that nothing keeps stay. */
export const graceMsOf = ({ fileGraceMinutes }: Pick<CoreConfig, 'fileGraceMinutes'>) =>
  fileGraceMinutes * 60_000;

/** What writes messages, the set of those that are durable, and who else is told of them. */
function openPipeline(
  { pendingHorizonSeconds }: Pick<CoreConfig, 'pendingHorizonSeconds'>,
  {
    kept,
    ...parts
  }: Omit<PipelineOptions, 'pendingHorizonMs' | 'onCommitted' | 'log'> &
    Pick<SetFollowerOptions, 'log' | 'kept'>,
) {
  const { db, events, log } = parts;
  const set = new NodeSet();
  const follower = new SetFollower({ db, set, events, kept, log });
  const listeners: ((committed: Committed) => void)[] = [];
  const pipeline = new Pipeline({
    ...parts,
    pendingHorizonMs: pendingHorizonSeconds * 1000,
    onCommitted: (committed) => {
      follower.committed(committed);
      for (const tell of listeners) tell(committed);
    },
  });
  return {
    pipeline,
    follower,
    onCommitted: (listener: (committed: Committed) => void) => listeners.push(listener),
  };
}

/** Keeps the secrets of webhooks; with what tells one key from another. */
async function openSecrets({ dataDir }: Pick<CoreConfig, 'dataDir'>): Promise<[SealedBox, string]> {
  const key = await loadOrCreateKeyFile(join(dataDir, KEY_FILES.sealing));
  return [openSealedBox(key), fingerprintOf(key)];
}

const openSender = (
  config: Pick<CoreConfig, 'webhookTimeoutMs' | 'webhookAllowHttp' | 'webhookAllowAddresses'>,
  now: () => number,
): Sender =>
  createSender({
    timeoutMs: config.webhookTimeoutMs,
    allowHttp: config.webhookAllowHttp,
    allowedAddresses: config.webhookAllowAddresses,
    now,
  });

interface IntakeParts extends Omit<IntakeOptions, 'carryOut' | 'checkNew'> {
  readonly db: Kysely<Schema>;
  readonly reserve: DiskReserve;
  readonly secrets: SealedBox;
  readonly sender: Sender;
  readonly events: EventLog;
}

const checkAll =
  (...checks: readonly IntakeOptions['checkNew'][]): IntakeOptions['checkNew'] =>
  async (accepted) => {
    for (const check of checks) await check(accepted);
  };

const openIntake = (
  { images }: Pick<CoreConfig, 'images'>,
  { db, reserve, secrets, sender, events, ...parts }: IntakeParts,
): Intake =>
  createIntake({
    ...parts,
    checkNew: checkAll(createImageCheck(db, images), createStartCheck(db, parts.now)),
    async carryOut(message, client) {
      reserve.take();
      const isExempt = client?.isExempt === true;
      const checkUrl = (url: URL) => sender.check(url);
      await registerWebhook({ db, secrets, now: parts.now, checkUrl, isExempt }, message);
      events.wake();
    },
  });

interface IpfsParts {
  readonly db: Kysely<Schema>;
  readonly blobs: BlobStore;
  readonly claims: Claims;
  readonly pipeline: Pipeline;
  readonly source: BlockSource | undefined;
  readonly now: () => number;
}

function openIpfs(
  config: Pick<
    CoreConfig,
    'ipfsRpcUrl' | 'ipfsRpcAuthorization' | 'ipfsGateways' | 'ipfsTimeoutMs' | 'fileGraceMinutes' | 'peers'
  >,
  parts: IpfsParts,
): IpfsFiles {
  const { db, blobs, claims, pipeline, source, now } = parts;
  const timeoutMs = config.ipfsTimeoutMs;
  // Peers may have blocks, too.
  const peers = peerUrlsOf(config).map((url) => `${url}/api/v0`);
  const ipfs = chooseIpfs(config, { db, blobs, claims, now, peers, source });
  return new IpfsFiles({ db, ipfs, pipeline, now, graceMs: graceMsOf(config), timeoutMs });
}

/** By which key other nodes know this one, and the keys of its random values, which it publishes. */
async function openIdentity(
  { dataDir, vrfKeyEpoch }: Pick<CoreConfig, 'dataDir' | 'vrfKeyEpoch'>,
  { db, trust, intake, now }: { db: Kysely<Schema>; trust: Trust; intake: Intake; now: () => number },
) {
  const signer: Signer = createSigner(await loadOrCreateKeyFile(join(dataDir, KEY_FILES.node)));
  const randomness = await openRandomness({
    dataDir,
    epoch: vrfKeyEpoch,
    nowSeconds: Math.floor(now() / 1000),
    alsoKnown: knownFromRegistry(db, trust.setOf('known_core_nodes')),
  });
  const announce = () => publishVrfKeys({ db, intake, signer, keys: randomness.keys, now });
  const nodeId = nodeIdOf(signer.address);
  const proveKey = (asked: Pick<NodeProofClaim, 'place' | 'challenge'>) =>
    createNodeProof({ nodeId, ...asked }, (text) => signer.sign(text));
  const provesOwn: ProvesOwn = (answer, asked) => provesNode(answer, { nodeId, ...asked }, signer.address);
  return { nodeAddress: signer.address, proveKey, provesOwn, randomness, announce };
}

/** How programs are sent to compute nodes. */
function openForwarding({ allowPrivate }: Pick<CoreConfig, 'allowPrivate'>, signal: AbortSignal) {
  const asker = createAsker({ mayReach: createReach(allowPrivate), keepAlive: true });
  signal.addEventListener('abort', () => asker.close(), { once: true });
  return { asker, signal };
}

/** How far the node is, as health sees it. A process at which no messages come in compares with no peer: the others do. */
const comparedBy = ({ roles }: Pick<RouteSettings, 'roles'>, { syncer }: Sync) => ({
  view: () => (takesMessages(roles) ? syncer.view() : { ...syncer.view(), state: 'alone' as const }),
});

/** The same database, for answers: of its connections they have a part, and each client its share of that. */
function openAnswering({ pool }: Pick<Database<Schema>, 'pool'>) {
  const askers = new Askers();
  const { each, common } = askers.open(answersOf(pool.options.max));
  const given = { connections: 0 };
  const open = (turns: ConnectionTurns) => {
    const part = partOf(pool, turns, given);
    return { pool: part, kysely: new Kysely<Schema>({ dialect: new PostgresDialect({ pool: part }) }) };
  };
  return { ...open(each), common: open(common).kysely, askers };
}

interface WatchedParts {
  readonly database: Database<Schema>;
  readonly answering: Pick<Database<Schema>, 'pool'>;
  readonly pipeline: Pipeline;
  readonly indexer: Indexer;
  readonly sync: Sync;
  readonly now: () => number;
}

/** Tells the metrics what the parts of the node know. */
function watchRooms(
  metrics: CoreMetrics,
  { database, answering, pipeline, indexer, sync, now }: WatchedParts,
): void {
  watchCore(metrics, { db: database.kysely, pool: database.pool, answering: answering.pool, pipeline });
  watchIndexer(metrics.own, indexer, now);
  watchSync(metrics, sync);
}

export type RoomConfig = TrustConfig &
  Parameters<typeof openIpfs>[0] &
  Parameters<typeof openSender>[0] &
  Parameters<typeof rateLimitsOf>[0] &
  Omit<RouteSettings, 'limits'> &
  Pick<
    CoreConfig,
    | 'dataDir'
    | 'images'
    | 'peers'
    | 'pendingHorizonSeconds'
    | 'vrfKeyEpoch'
    | 'syncIntervalSeconds'
    | 'rateProcesses'
    | 'allowPrivate'
  >;

export type CoreRooms = Awaited<ReturnType<typeof openRooms>>;

/** Everything behind the doors: each room is given its settings and what it uses of those above it. */
export async function openRooms(config: RoomConfig, ground: Ground) {
  const { database, blobs, pieces, verifier, indexer, reserve, signal, log, countOf = () => 1 } = ground;
  const processes = () => config.rateProcesses || countOf('answer');
  const limits = ground.limits ?? { ...rateLimitsOf(config), processes };
  const settings: RouteSettings = { ...config, limits };
  const db = database.kysely;
  const answering = openAnswering(database);
  const clock = new NetworkClock({ machineNow: ground.now, uptime: ground.uptime, log });
  const [now, uptime] = [clock.now, () => clock.uptime()];
  const metrics = await createCoreMetrics({ isProcess: ground.isProcess });
  const events = createEventLog(answering.common);
  const readContentFile = createContentReader(db, blobs);
  const { links, isLeading } = ground;
  const trust = await openTrust(config, { db, leads: isLeading?.() ?? true, log });
  const schedulers = trust.setOf('schedulers');
  const writes = new WriteWatch<Schema>({ write: createWrite(database.pool), log, uptime });
  const { pipeline, follower, onCommitted } = openPipeline(config, {
    ...{ db, write: writes.write, events, schedulers, readContentFile, reserve, now, log },
    ...{ observer: metrics.pipeline, uptime, kept: ground.keptPlace },
  });
  const doubtClock = () => adviseOnNewest(clock.comparison, now(), follower.set.newestTime);
  const [secrets, sealing] = await openSecrets(config);
  const sender = openSender(config, now);
  const intake = openIntake(config, {
    ...{ db, verifier, pipeline, readContentFile, reserve, secrets, sender, events, now, doubtClock },
  });
  const { uploadLimitBytes, dataDir } = config;
  const place = choosePlace({ db, pieces, dataDir, reserve, disk: ground.disk, now });
  const files = new Files({ db, blobs, intake, pipeline, uploadLimitBytes, now });
  const { claims } = files;
  const ipfs = openIpfs(config, { db, blobs, claims, pipeline, source: ground.blockSource, now });
  await deriveCredits(db, readContentFile, trust.isCreditEnforced);
  const own = await openIdentity(config, { db, trust, intake, now });
  const { nodeAddress, provesOwn, randomness } = own;
  const pace = { clock, intervalMs: config.syncIntervalSeconds * 1000 };
  const sync = createSync({ ...pace, db, files, follower, intake, links, isLeading, provesOwn, log });
  watchRooms(metrics, { database, answering, pipeline, indexer, sync, now });
  const { adviseOnProcesses, adviseOnChains, healthTimeoutMs: timeoutMs } = ground;
  return {
    ...{ db, pipeline, intake, events, files, ipfs, secrets, sender, sync, indexer, metrics, trust },
    ...own,
    ...{ answering, onCommitted, reserve, now, signal, settings },
    identity: { node: nodeAddress, sealing, vrf: randomness.keys[0]!.public_key },
    reads: createReads({ database: answering, standby: ground.standby, metrics }),
    ...{ uploads: new Uploads(db, config), uploadPlaces: createUploadPlaces(config, metrics.http) },
    parts: new Parts({ place, now }),
    clientOf: createClientOf(settings.limits),
    learnTrust: createLearning(config, { trust, nodeAddress, signal }),
    /** Makes what is stored that of those who are trusted now; resolves when nothing is left. */
    deriveTrust: (until: AbortSignal = signal) => trust.derive({ pipeline, readContentFile }, until),
    ...openRunners(db, schedulers),
    forwarding: openForwarding(config, signal),
    health: createHealth({
      ...{ db, writes, pipeline, sync: comparedBy(config, sync), trust, reserve, signal, log },
      ...{ adviseOnProcesses, adviseOnChains, doubtClock, files: ground.writeProbe },
      since: ground.notWellSince ?? new Since(now),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    }),
  };
}

/** What other processes must have in common with one that has these roles. */
export const identityOf = (
  roles: readonly Role[],
  { node, sealing, vrf }: CoreRooms['identity'],
  storeId: string | undefined,
): Identity => ({
  ...(isNeededBy(roles, 'node') && { node, vrf, ...(storeId !== undefined && { files: storeId }) }),
  ...(isNeededBy(roles, 'sealing') && { sealing }),
});

/** What the routes may use. */
export function routeRoomsOf(rooms: CoreRooms, network: Rooms['network']): Rooms {
  const { answering, intake, events, files, parts, clientOf, secrets, metrics, health, randomness } = rooms;
  const { nodeAddress, proveKey, trust, indexer, ipfs, forwarding, sync, now, signal, settings } = rooms;
  const { pipeline, reads, uploads, uploadPlaces, listRunners, listRunnersNow } = rooms;
  return {
    ...{ db: answering.kysely, pool: answering.pool, commonDb: answering.common, askers: answering.askers },
    ...{ intake, events, files, parts, clientOf, secrets, metrics, health, randomness },
    ...{ nodeAddress, proveKey, trust, indexer, ipfs, forwarding, sync, now, signal, settings },
    ...{ network, reads, uploads, uploadPlaces, listRunners, listRunnersNow },
    answers: new Answers(clientOf),
    longLists: new LongLists(clientOf),
    fileReads: new FileReads(clientOf, metrics.http),
    lastEvent: () => Math.max(pipeline.lastEvent, events.seen),
    resumeLine: () => pipeline.resume(),
  };
}
