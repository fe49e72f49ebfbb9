import { createWrite, type DiskReserve } from '@skerry/database';
import { type Host, type Logger, runLoop } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Pool } from 'pg';
import { type Anchoring, startAnchoring } from './chains/anchoring/anchoring.ts';
import { watchAnchoring } from './chains/anchoring/metrics.ts';
import type { AnchorSettings } from './chains/anchoring/settings.ts';
import { type CoreConfig, peerUrlsOf } from './config.ts';
import { eraseForgotten } from './intake/erase.ts';
import { watchFetcher, watchFileFetcher, watchScrub } from './node/metrics/metrics.ts';
import { createPeerFileSource } from './peers/sync/file-source.ts';
import { type CoreRooms, graceMsOf } from './rooms.ts';
import type { BlobStore } from './store/files/blob-store.ts';
import type { FilesDisk } from './store/files/disk/files-disk.ts';
import { Scrub } from './store/files/disk/scrub.ts';
import { FileFetcher } from './store/files/fetcher.ts';
import { createOwnFiles } from './store/files/fetching/own-files.ts';
import { LostFiles } from './store/files/lost.ts';
import { MissedFiles } from './store/files/missed.ts';
import { Sweep, startSweeping } from './store/files/sweep.ts';
import { SweepMark } from './store/files/sweep-mark.ts';
import { Blocks } from './store/ipfs/blocks.ts';
import { rawIdOf } from './store/ipfs/cid.ts';
import { IpfsFetcher } from './store/ipfs/fetcher.ts';
import { createGatewaySource } from './store/ipfs/gateways.ts';
import { startIpfsUpkeep } from './store/ipfs/ipfs-files.ts';
import type { Schema } from './store/schema.ts';

/** How often what is pending for too long, and what was forgotten long ago, is looked for. */
const UPKEEP_INTERVAL_MS = 10_000;
/** How often peers are asked whom they trust. */
const TRUST_INTERVAL_MS = 10_000;
/** How often files that messages lack are looked for. */
const FETCH_INTERVAL_MS = 1_000;
/** How often some of the files that messages keep are looked at. */
const LOST_INTERVAL_MS = 60_000;
/** How often it is looked whether some of the files are to be read again. */
const SCRUB_INTERVAL_MS = 10_000;
/** How often it is looked whether files for which messages were rejected are to be asked for. */
const MISSED_INTERVAL_MS = 10_000;

export interface LeadingOptions {
  readonly config: CoreConfig;
  readonly rooms: CoreRooms;
  readonly blobs: BlobStore;
  /** Of the directory that they are in, where they are in one. */
  readonly disk?: FilesDisk | undefined;
  readonly pool: Pool;
  readonly anchors: readonly AnchorSettings[];
  /** Whether this process answers anybody yet. */
  readonly isServing: () => boolean;
  readonly log: Logger;
  readonly longStep?: Host['longStep'];
}

/** The parts that count something, of the last time that this process led. */
interface Counting {
  anchoring?: Pick<Anchoring, 'invalid' | 'restarts'>;
  files?: Pick<FileFetcher, 'counts'>;
  ipfs?: Pick<IpfsFetcher, 'counts'>;
  scrub?: Pick<Scrub, 'counts' | 'share'>;
}

/** What the node publishes is told at the start; a disk without room for it is no reason not to start. */
function announceOnce(announce: () => Promise<unknown>, log: Logger): () => Promise<void> {
  let isDone = false;
  return async () => {
    if (isDone) return;
    try {
      await announce();
      isDone = true;
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'STORAGE_FULL') throw error;
      log.warn({ reason: error.message }, "this node's keys will be announced when its disk has space");
    }
  };
}

/** What every process that does not lead does in the place of asking peers whom they trust. */
export const followTrust = (
  { trust }: Pick<CoreRooms, 'trust'>,
  leads: () => boolean,
  { signal, log }: Pick<Host, 'signal' | 'log'>,
): Promise<void> =>
  runLoop({ name: 'trust of the node', intervalMs: TRUST_INTERVAL_MS, signal, log }, async () => {
    if (!leads()) await trust.follow();
  });

/**
 * What one process of the node does alone (docs/roles.md): what changes messages or files without anybody waiting for it.
 * Begun whenever this process comes to lead, and ended when another one may.
 */
export class Leading {
  readonly #options: LeadingOptions;
  readonly #counting: Counting = {};

  constructor(options: LeadingOptions) {
    this.#options = options;
    const { rooms, pool, anchors } = options;
    const { db, metrics } = rooms;
    const counting = this.#counting;
    watchFetcher(metrics, () => counting.ipfs?.counts);
    watchFileFetcher(metrics, () => counting.files?.counts);
    watchScrub(metrics, () => counting.scrub);
    watchAnchoring(metrics, {
      ...{ db, pool, anchors },
      invalid: () => counting.anchoring?.invalid ?? 0,
      restarts: () => counting.anchoring?.restarts,
    });
  }

  /** Resolves when what has to be so before anybody asks is so. */
  async begin(leading: AbortSignal): Promise<AsyncDisposable> {
    await using stack = new AsyncDisposableStack();
    const stop = new AbortController();
    const signal = AbortSignal.any([leading, stop.signal]);
    const keep = (running: Promise<void>) =>
      stack.defer(() => {
        stop.abort();
        return running;
      });
    await this.#settle(signal, keep);
    const { rooms, blobs, log } = this.#options;
    const { db, reserve, now } = rooms;
    const missed = {
      hash: new MissedFiles({ db, namedBy: 'hash', reserve, now }),
      cid: new MissedFiles({ db, namedBy: 'cid', reserve, now }),
    };
    this.#keepFiles(stack, missed.cid, signal);
    await this.#followChains(stack);
    const lost = new LostFiles({ db, blobs, log });
    keep(
      runLoop({ name: 'lost files', intervalMs: LOST_INTERVAL_MS, signal, log }, async () =>
        this.#isDiskWell() ? await lost.round() : false,
      ),
    );
    keep(this.#scrubFiles(lost, signal));
    for (const one of Object.values(missed))
      keep(runLoop({ name: 'missed files', intervalMs: MISSED_INTERVAL_MS, signal, log }, () => one.round()));
    keep(this.#fetchFiles(lost, missed, signal));
    rooms.sync.syncer.nudge();
    const owned = stack.move();
    return { [Symbol.asyncDispose]: () => owned.disposeAsync() };
  }

  /** What has to be so before anybody asks, and the loops that keep it so. */
  async #settle(signal: AbortSignal, keep: (running: Promise<void>) => void): Promise<void> {
    const { rooms, isServing, log, longStep } = this.#options;
    using _ = longStep?.('deciding the messages that an earlier process had left');
    const { db, pipeline, trust, learnTrust, deriveTrust, now } = rooms;
    // Another process may have led before, with other settings.
    await trust.follow();
    await trust.insist();
    // What the node would answer hangs on it.
    await learnTrust();
    // What an earlier process had left in line. Who serves takes messages meanwhile, perhaps without end: then nothing waits for it.
    if (isServing()) pipeline.resume();
    else await pipeline.idle();
    const announce = announceOnce(rooms.announce, log);
    await announce();
    keep(
      // What is stored is derived again beside everything else.
      runLoop({ name: 'trust', intervalMs: TRUST_INTERVAL_MS, signal, log }, async () => {
        await learnTrust();
        await deriveTrust(signal);
      }),
    );
    keep(
      runLoop({ name: 'upkeep', intervalMs: UPKEEP_INTERVAL_MS, signal, log }, async () => {
        await announce();
        await pipeline.expire();
        // Another process on the database may have ended with a line.
        pipeline.resume();
        await eraseForgotten(db, now());
      }),
    );
  }

  /** Where the files are not at hand, nothing is known of what is lost, and nothing can be fetched. */
  #isDiskWell(): boolean {
    const { disk } = this.#options;
    return !disk || (disk.absence === undefined && disk.hang === undefined);
  }

  /** Room for what is fetched, on a disk that is there. */
  #room(): Pick<DiskReserve, 'hasRoom'> {
    const { reserve } = this.#options.rooms;
    const isDiskWell = () => this.#isDiskWell();
    return {
      get hasRoom() {
        return reserve.hasRoom && isDiskWell();
      },
    };
  }

  /** Reads the files of a directory again, to find what is damaged. Whoever keeps an object store sees to that itself. */
  async #scrubFiles(lost: LostFiles, signal: AbortSignal): Promise<void> {
    const { config, rooms, blobs, disk, log } = this.#options;
    if (!disk) return;
    const { db, files, now } = rooms;
    const urls = [...config.ipfsGateways, ...peerUrlsOf(config).map((url) => `${url}/api/v0`)];
    const source = createGatewaySource({ urls: () => urls, timeoutMs: config.ipfsTimeoutMs });
    const { claims } = files;
    const blocks = new Blocks({ blobs, claims, source });
    const scrub = new Scrub({
      ...{ db, blobs, claims, lost, now, log },
      restoreBlock: (hash, ended) => blocks.obtain(rawIdOf(hash), ended),
      directory: disk.directory,
      days: config.scrubDays,
      mibPerSecond: config.scrubMibPerSecond,
    });
    this.#counting.scrub = scrub;
    await runLoop({ name: 'reading files again', intervalMs: SCRUB_INTERVAL_MS, signal, log }, async () => {
      if (this.#isDiskWell()) await scrub.round(signal);
    });
  }

  /** Lets go of files that nothing keeps, and brings those of IPFS that messages name. */
  #keepFiles(stack: AsyncDisposableStack, missed: MissedFiles, signal: AbortSignal): void {
    const { config, rooms, blobs, log } = this.#options;
    const { db, files, parts, ipfs, now } = rooms;
    const mark = blobs.mark && new SweepMark({ db, mark: blobs.mark, log });
    const sweep = new Sweep({ db, blobs, claims: files.claims, mark, graceMs: graceMsOf(config), now, log });
    stack.use(startSweeping({ sweep, parts, isWell: () => this.#isDiskWell() }, { signal, log }));
    const limits = { limitBytes: config.ipfsPinBytes, tryMs: config.ipfsPinSeconds * 1000 };
    this.#counting.ipfs = stack.use(
      new IpfsFetcher({ db, files: ipfs, ...limits, now, reserve: this.#room(), missed, log }),
    );
    stack.use(startIpfsUpkeep(ipfs, { signal, log }));
  }

  /** Reads archives from chains, and packs them. */
  async #followChains(stack: AsyncDisposableStack): Promise<void> {
    const { rooms, pool, anchors, log } = this.#options;
    const { db, intake, events, ipfs: files, reserve, now } = rooms;
    const write = createWrite<Schema>(pool);
    this.#counting.anchoring = stack.use(
      await startAnchoring({ pool, db, write, files, intake, events, anchors, now, reserve, log }),
    );
  }

  async #fetchFiles(
    lost: LostFiles,
    missed: Readonly<Record<'hash' | 'cid', MissedFiles>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { config, rooms, blobs, log } = this.#options;
    const { db, files, sync, reserve, now } = rooms;
    const { reputation } = sync.syncer;
    const sources = peerUrlsOf(config).map((url) =>
      createPeerFileSource(url, () => reputation.noteMisbehaved(url)),
    );
    const swept = () => new MissedFiles({ db, namedBy: 'hash', reserve, now });
    const wanted = { lost, missed: missed.hash, swept };
    const own = createOwnFiles(blobs);
    const fetcher = new FileFetcher({ db, files, sources, own, now, reserve: this.#room(), ...wanted, log });
    this.#counting.files = fetcher;
    const heard = new Set<string>();
    await runLoop({ name: 'files of peers', intervalMs: FETCH_INTERVAL_MS, signal, log }, async () => {
      let isBack = false;
      for (const { name, state } of sync.syncer.view().peers) {
        const answers = state === 'synced' || state === 'syncing' || state === 'stalled';
        if (answers && !heard.has(name)) isBack = true;
        if (answers) heard.add(name);
        else heard.delete(name);
      }
      if (isBack) {
        fetcher.wake();
        missed.cid.wake();
      }
      await fetcher.look(signal);
    });
    await fetcher.idle();
  }
}
