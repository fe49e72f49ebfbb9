import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type Database,
  migrate,
  OwnConnection,
  openDatabase,
  openSharedHolds,
  Reserve,
  readConnectionRoom,
  Standby,
} from '@skerry/database';
import { loadIndexerSettings, openIndexer } from '@skerry/indexer';
import {
  checkPort,
  type Host,
  type Logger,
  listen,
  makeDirectory,
  openSince,
  persist,
  type RunningService,
  runLoop,
} from '@skerry/kit';
import { createApi } from './api/api.ts';
import { createChainAdvice } from './chains/advice.ts';
import { type AnchorSettings, loadAnchorSettings } from './chains/anchoring/settings.ts';
import { followIndexPosts } from './chains/index-posts.ts';
import { type CoreConfig, peerUrlsOf } from './config.ts';
import { buildBatchAddon } from './intake/verify/batch/build-addon.ts';
import { verifyNear } from './intake/verify/near.ts';
import { VerifierPool } from './intake/verify/pool.ts';
import { followTrust, Leading } from './leading.ts';
import { noteFilesId, readFilesId, readWitnesses } from './node/files-id.ts';
import { WriteProbe } from './node/health/write-probe.ts';
import { openKeptPlace } from './node/kept-place.ts';
import { watchDamaged, watchProcesses } from './node/metrics/metrics.ts';
import { checkKeyFiles, noteKeyFiles } from './node/own-keys.ts';
import { lead } from './node/processes/lead.ts';
import { Member } from './node/processes/member.ts';
import { type LedRole, ROLES, type Role, takesMessages } from './node/processes/roles.ts';
import { LOOK_MS } from './notify/events/log.ts';
import { createDispatchObserver, startDeliverer } from './notify/webhooks/delivery/deliverer.ts';
import { type GossipDoor, NO_GOSSIP, startGossip } from './peers/p2p/start.ts';
import { createPeerFileSource } from './peers/sync/file-source.ts';
import { createHttpLink } from './peers/sync/link.ts';
import { LOOK_MS as SET_LOOK_MS } from './peers/sync/set-follower.ts';
import type { Sync } from './peers/sync/sync.ts';
import { type CoreRooms, type Ground, identityOf, openRooms, routeRoomsOf } from './rooms.ts';
import { adviseOnConnections, CONNECTIONS } from './store/connections.ts';
import { type OpenStore, openBlobStore } from './store/files/choose-store.ts';
import type { FilesDisk } from './store/files/disk/files-disk.ts';
import { partsDirectoryOf } from './store/files/parts/choose-place.ts';
import type { Schema } from './store/schema.ts';

const MIGRATIONS = fileURLToPath(new URL('./store/migrations', import.meta.url));

/** One core is left to the thread that answers requests. */
const workersOf = ({ verifyWorkers, roles }: Pick<CoreConfig, 'verifyWorkers' | 'roles'>) =>
  takesMessages(roles) ? verifyWorkers || Math.max(1, availableParallelism() - 1) : 1;

/** Without a network there is nothing to index. */
const neededRoles = ({ indexer }: Pick<Ground, 'indexer'>): readonly Role[] =>
  ROLES.filter((role) => role !== 'index' || indexer.settings.networks.length > 0);

/** From the start of the node to its stop. */
interface Life extends Host {
  /** Ends in reverse. */
  readonly stack: AsyncDisposableStack;
  /** What runs beside ends with the node, and with a start that fails half-way. */
  keep(running: Promise<void>): void;
  stop(): void;
}

/** Ends with the host's signal or our own disposal: either way streams end and the node says that it stops. */
function beginLife(stack: AsyncDisposableStack, { signal, ...host }: Host): Life {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  return {
    ...host,
    signal: AbortSignal.any([signal, stopping.signal]),
    stack,
    stop,
    keep: (running) =>
      stack.defer(() => {
        stop();
        return running;
      }),
  };
}

interface CoreGround extends Ground {
  /** Connections to the database that all processes of the node may have together; undefined where that is not known. */
  readonly connectionRoom: number | undefined;
  readonly anchors: readonly AnchorSettings[];
  /** Which files these are, of all that a process may have. */
  readonly storeId: string | undefined;
}

/** Found out before anybody asks. */
async function probeWrites(
  directories: readonly string[],
  { reserve, disk }: { readonly reserve: Reserve; readonly disk: FilesDisk | undefined },
  { keep, signal, log }: Life,
): Promise<WriteProbe> {
  const probe = new WriteProbe({ directories, reserve, disk, log });
  await probe.look();
  keep(probe.run(signal));
  return probe;
}

/** Where the embedded database grows. */
const placesOf = ({ directory }: Pick<Database<Schema>, 'directory'>) =>
  directory === undefined ? [] : [directory, join(directory, 'pg_wal')];

/** Whatever grows has its disk watched: an operator may keep each of these on one of its own, by a link. */
async function watchPlaces(reserve: Reserve, directories: readonly string[]): Promise<void> {
  for (const directory of directories) {
    await makeDirectory(directory);
    await reserve.watch(directory);
  }
}

/** Of the disks that all processes of a directory write to. The embedded database has one process. */
function openReserve(
  { dataDir, databaseUrl, diskReserveMib: setMib }: CoreConfig,
  stack: AsyncDisposableStack,
  log: Logger,
): Reserve {
  const hasOthers = databaseUrl !== undefined;
  const shared = hasOthers ? stack.use(openSharedHolds(join(dataDir, 'holds'), log)) : undefined;
  return new Reserve({ setMib, log, shared });
}

/** A peer, with its files. */
const linkTo = (url: string) => ({ ...createHttpLink(url), openFile: createPeerFileSource(url).open });

/** The directory of files has to be the one that the database goes with. */
async function openFiles(
  config: CoreConfig,
  directory: string,
  { reserve, db, log }: { reserve: Reserve; db: Database<Schema>['kysely']; log: Logger },
): Promise<OpenStore> {
  const knownId = await readFilesId(db, config);
  const witnesses = knownId === undefined ? await readWitnesses(db, config) : [];
  const note = (id: string) => noteFilesId(db, config, id);
  return openBlobStore(config, { directory, reserve, knownId, witnesses, note, log });
}

/** What the rooms stand on. The database heeds the host alone: it is closed after all that uses it. */
async function openGround(
  config: CoreConfig,
  life: Life,
  { signal, log, longStep }: Host,
): Promise<CoreGround> {
  const { stack, keep, signal: stopping } = life;
  const { dataDir, databaseUrl, port } = config;
  await makeDirectory(dataDir);
  const reserve = openReserve(config, stack, log);
  await reserve.watch(dataDir);
  using _ = longStep?.('opening the database, and bringing it up to date');
  const database = stack.use(
    await openDatabase<Schema>({
      ...{ databaseUrl, dataDir: join(dataDir, 'postgres'), log, signal },
      connectionsMax: CONNECTIONS.all,
    }),
  );
  const { pool } = database;
  await checkKeyFiles(database.kysely, config);
  await migrate({ pool, directory: MIGRATIONS, log });
  const filesDir = join(dataDir, 'files');
  const { id: storeId, ...store } = await openFiles(config, filesDir, { reserve, db: database.kysely, log });
  const filePlaces = store.pieces ? [filesDir] : [filesDir, partsDirectoryOf(dataDir)];
  await watchPlaces(reserve, [...placesOf(database), ...filePlaces]);
  const { cacheDir } = config;
  const prepareBatches = (aborted: AbortSignal) => buildBatchAddon(cacheDir, aborted);
  const verifier = stack.use(
    verifyNear(
      new VerifierPool({
        workers: workersOf(config),
        prepareBatches: config.signatureBatches ? prepareBatches : undefined,
        log,
      }),
    ),
  );
  keep(reserve.run(stopping));
  // Processes of one directory have ports of their own.
  const sincePath = join(dataDir, `not-well-since-${port}.json`);
  const { since: notWellSince } = stack.use(await openSince(sincePath, { now: Date.now, log }));
  const keptPath = join(dataDir, `followed-${port}.json`);
  const keptPlace = stack.use(await openKeptPlace(keptPath, { db: database.kysely, log }));
  const { anchors, indexer: indexed } = await loadAnchorSettings(
    config.anchorFile,
    await loadIndexerSettings(config.indexerFile),
  );
  return {
    ...{ database, ...store, storeId, verifier, reserve, anchors, keptPlace, log },
    writeProbe: await probeWrites(filePlaces, { reserve, disk: store.disk }, life),
    connectionRoom: await readConnectionRoom(pool),
    indexer: stack.use(openIndexer({ pool, settings: indexed, reserve, log })),
    links: peerUrlsOf(config).map(linkTo),
    now: Date.now,
    notWellSince,
    signal: stopping,
    isProcess: true,
    ...(config.databaseReadUrl !== undefined && {
      standby: stack.use(await Standby.open({ url: config.databaseReadUrl, log })),
    }),
  };
}

/** Takes this process's place among those of the node; the last to be left. */
async function joinOthers(
  { roles, databaseUrl, lostKeys }: Pick<CoreConfig, 'roles' | 'databaseUrl' | 'lostKeys'>,
  rooms: Pick<CoreRooms, 'db' | 'identity' | 'randomness' | 'metrics'>,
  { storeId, database, connectionRoom }: Pick<CoreGround, 'storeId' | 'database' | 'connectionRoom'>,
  { stack, keep, signal, log, failed: outgrown = () => {} }: Life,
): Promise<Member> {
  const identity = identityOf(roles, rooms.identity, storeId);
  // The embedded database has one user at a time.
  const isAlone = databaseUrl === undefined;
  // Whoever waits for a connection behind everybody else is soon taken for dead.
  const db = isAlone ? rooms.db : stack.use(new OwnConnection(database.pool)).createDatabase<Schema>();
  const member = await Member.join({ db, roles, identity, isAlone, log, signal, outgrown });
  stack.defer(() => member.leave());
  const more = rooms.randomness.keys.map((key) => key.public_key);
  await noteKeyFiles(db, identity, { more, lost: lostKeys }, log);
  const advice = adviseOnConnections(member.count, connectionRoom);
  if (advice) log.warn(advice);
  keep(member.run(signal));
  watchProcesses(rooms.metrics, member);
  return member;
}

/** Does the work of a role while this process leads; resolves when it has begun, where it leads at once. */
async function standFor(
  role: LedRole,
  member: Member,
  { keep, signal, log }: Life,
  begin: (signal: AbortSignal) => Promise<AsyncDisposable>,
): Promise<void> {
  const lease = member.leaseOf(role);
  if (!lease) return;
  const { begun, ended } = lead({ role, lease, signal, log }, begin);
  keep(ended);
  await begun;
}

/** Indexes chains, and reads what messages ask to be indexed. */
async function beginIndexing(
  rooms: Pick<CoreRooms, 'db' | 'events' | 'indexer' | 'trust' | 'now'>,
  { database, log }: Pick<Ground, 'database' | 'log'>,
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const { db, events, indexer, trust, now } = rooms;
  const creditPublishers = trust.setOf('credit_publishers');
  stack.use(await indexer.begin());
  stack.use(followIndexPosts({ db, pool: database.pool, events, indexer, creditPublishers, now, log }));
  const owned = stack.move();
  return { [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function startWebhooks(
  rooms: Pick<CoreRooms, 'db' | 'events' | 'secrets' | 'sender' | 'metrics' | 'reserve' | 'now'>,
  member: Member,
  { stack, log }: Life,
): void {
  const { db, events, secrets, sender, metrics, reserve, now } = rooms;
  const observer = createDispatchObserver(metrics.own);
  const deliverers = () => member.countOf('deliver');
  stack.use(startDeliverer({ db, events, secrets, sender, observer, deliverers, now, reserve, log }));
}

/** Whoever waits for events hears of those of other processes, too. */
const followOthers = (
  { events }: Pick<CoreRooms, 'events'>,
  member: Member,
  { signal, log }: Host,
): Promise<void> =>
  runLoop({ name: 'events of other processes', intervalMs: LOOK_MS, signal, log }, async () => {
    if (member.hasOthers) await events.look();
  });

/** Between tries to read what is kept, while the database is away. */
const LOAD_RETRY_MS = { baseMs: 500, maxMs: 15_000 };

/** Answers do not wait for it; the node says that it is syncing. */
async function keepInStep(sync: Sync, { signal, log }: Host): Promise<void> {
  const options = { ...LOAD_RETRY_MS, signal, log };
  await persist({ name: 'reading the keys of all messages', ...options }, () => sync.load());
  await Promise.all([
    persist({ name: 'keeping in step with peers', ...options }, () => sync.syncer.run(signal)),
    runLoop({ name: 'what other processes wrote', intervalMs: SET_LOOK_MS, signal, log }, () => sync.look()),
  ]);
}

/** What is wrong with the processes of the node, in words; undefined where nothing is. */
function adviseOn(member: Member, ground: CoreGround): string | undefined {
  const advice = [
    member.adviseOn(neededRoles(ground)),
    adviseOnConnections(member.count, ground.connectionRoom),
  ];
  return advice.filter((one) => one !== undefined).join('; ') || undefined;
}

/** Builds the core node from the floor up, and takes it down in reverse. */
export async function startCore(config: CoreConfig, host: Host): Promise<RunningService> {
  await using stack = new AsyncDisposableStack();
  const life = beginLife(stack, host);
  const { signal, log, keep, longStep } = life;
  const { roles } = config;
  await checkPort(config.host, config.port);
  const ground = await openGround(config, life, host);
  const { database, blobs, anchors } = ground;
  const known: { member?: Member } = {};
  // Who has the embedded database leads in the end.
  const leads = () => known.member?.leads('write') ?? config.databaseUrl === undefined;
  const countOf = (role: Role) => known.member?.countOf(role) ?? 1;
  const adviseOnProcesses = () => known.member && adviseOn(known.member, ground);
  let isServing = false;
  const advice = { adviseOnProcesses, adviseOnChains: createChainAdvice(ground) };
  const rooms = await openRooms(config, { ...ground, ...advice, isLeading: leads, countOf });
  const member = await joinOthers(config, rooms, ground, life);
  known.member = member;
  stack.defer(() => rooms.pipeline.close());
  await standFor('index', member, life, () => beginIndexing(rooms, ground));
  const leading = new Leading({
    config,
    rooms,
    blobs,
    disk: ground.disk,
    pool: database.pool,
    anchors,
    isServing: () => isServing,
    log,
    ...(longStep && { longStep }),
  });
  watchDamaged(rooms.metrics, () => ground.writeProbe?.damaged ?? 0);
  await standFor('write', member, life, (led) => leading.begin(led));
  keep(followTrust(rooms, leads, life));
  keep(followOthers(rooms, member, life));
  if (roles.includes('deliver')) startWebhooks(rooms, member, life);
  if (takesMessages(roles)) keep(keepInStep(rooms.sync, { signal, log }));
  const gossip: GossipDoor = roles.includes('answer')
    ? stack.use(await startGossip(rooms, config, { signal, log }))
    : NO_GOSSIP;
  const api = await createApi(routeRoomsOf(rooms, gossip), log);
  stack.defer(() => api.close());
  stack.defer(() => life.stop());
  const url = await listen(api, config.host, config.port);
  isServing = true;
  const owned = stack.move();
  return { urls: [url], [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
