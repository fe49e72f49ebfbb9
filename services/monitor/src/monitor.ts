import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SecureContext } from 'node:tls';
import { CoreClient, createSigner, type Signer } from '@skerry/client';
import {
  createReach,
  type Host,
  loadOrCreateKeyFile,
  pause,
  type RunningService,
  runLoop,
} from '@skerry/kit';
import { AppError, DIAGNOSTIC_VM } from '@skerry/protocol';
import { type FindSystem, loadSystems } from './asn.ts';
import type { MonitorConfig } from './config.ts';
import type { Clock } from './follow-plan.ts';
import { HourStore } from './hour-store.ts';
import { Hours } from './hours.ts';
import {
  listAnnouncedNodes,
  listContentOf,
  makeReferenceFile,
  readListedNodes,
  sendReport,
  storeNodeList,
  storeReferenceFile,
} from './network.ts';
import { distinctNodes, type MeasuredNode, parseCoreNode } from './node-list.ts';
import { trustAlso } from './probe/authorities.ts';
import { measureNode } from './probe/measure.ts';
import { ping } from './probe/ping.ts';
import { signReports } from './report.ts';
import { createScoresPublisher, keepReleases } from './scores.ts';

const clock: Clock = {
  now: Date.now,
  waitUntil: (timeMs, signal) => pause(Math.max(0, timeMs - Date.now()), signal),
};

/** Between two tries to begin an hour, or to send one. */
const RETRY_MS = 1_000;
const DELIVERY_MS = 10_000;

/** The seed of the plans: known to whoever has the key, so that nobody else can foretell when a node is visited. */
const seedOf = (privateKey: string) =>
  createHmac('sha256', privateKey).update('skerry monitor plan').digest('hex');

async function readAuthorities(path: string | undefined): Promise<SecureContext | undefined> {
  if (path === undefined) return undefined;
  try {
    return trustAlso(await readFile(path, 'utf8'));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new AppError(
      'INVALID_CONFIG',
      `SKERRY_MONITOR_CA_FILE must name a PEM file of certificate authorities; ${path} is none (${code ?? message})`,
      { cause },
    );
  }
}

export interface MonitorParts {
  readonly privateKey: string;
  readonly signer: Signer;
  readonly core: CoreClient;
  readonly store: HourStore;
  readonly trusted: SecureContext | undefined;
  readonly signal: AbortSignal;
  readonly log: Host['log'];
}

/** Which nodes an hour measures, and the references that they are measured with. */
export class Targets {
  readonly #config: MonitorConfig;
  readonly #core: CoreClient;
  readonly #store: HourStore;
  readonly #signal: AbortSignal;
  readonly #log: Host['log'];
  /** Whose node list counts. */
  readonly owner: string;
  #findSystem: FindSystem;
  #storedList = '';
  #isFileStored = false;

  private constructor(config: MonitorConfig, parts: MonitorParts, findSystem: FindSystem) {
    const { core, store, signer, signal, log } = parts;
    this.#config = config;
    this.#core = core;
    this.#store = store;
    this.#signal = signal;
    this.#log = log;
    this.owner = config.nodeListOwner ?? signer.address;
    this.#findSystem = findSystem;
  }

  static async create(config: MonitorConfig, parts: MonitorParts): Promise<Targets> {
    return new Targets(config, parts, await loadSystems(config.asnFile));
  }

  /** As the list of systems was when nodes were listed last. */
  get findSystem(): FindSystem {
    return this.#findSystem;
  }

  async list(): Promise<MeasuredNode[]> {
    const { asnFile, coreUrl, nodeListOwner, announcedNodes, coreNodes } = this.#config;
    const source = { core: this.#core, signal: this.#signal };
    this.#findSystem = await loadSystems(asnFile);
    const listed =
      nodeListOwner === undefined ? [parseCoreNode(coreUrl)] : await readListedNodes(source, this.owner);
    const announced = announcedNodes ? await listAnnouncedNodes(source, this.#store) : [];
    const nodes = distinctNodes([...coreNodes, ...listed, ...announced]);
    await this.#keepReferences(nodes);
    return nodes;
  }

  /** What the network does not have, the monitor brings: a node list, a file to fetch, and a table of versions. */
  async #keepReferences(nodes: readonly MeasuredNode[]): Promise<void> {
    const { referenceFile, nodeListOwner, releases } = this.#config;
    const content = listContentOf(nodes, await this.#store.readAnswered());
    const list = JSON.stringify(content);
    if (referenceFile === undefined && !this.#isFileStored)
      await this.#bring(async () => {
        await storeReferenceFile(this.#core);
        this.#isFileStored = true;
      });
    if (nodeListOwner === undefined && list !== this.#storedList)
      await this.#bring(async () => {
        await storeNodeList(this.#core, content);
        this.#storedList = list;
      });
    await this.#bring(() => keepReleases(this.#core, releases, Date.now()));
  }

  /** Nodes are measured all the same, and the other things brought: who is refused something has an hour to publish. */
  async #bring(store: () => Promise<unknown>): Promise<void> {
    try {
      await store();
    } catch (error) {
      if (!(error instanceof AppError) || error.kind === 'unavailable') throw error;
      this.#log.error({ err: error }, 'the core node refused what nodes are measured with');
    }
  }
}

function createHours(config: MonitorConfig, parts: MonitorParts, targets: Targets): Hours {
  const { privateKey, signer, core, trusted, store, signal, log } = parts;
  const referenceFile = config.referenceFile ?? makeReferenceFile().hash;
  const mayReach = createReach(config.allowPrivate);
  return new Hours({
    clock,
    hourMs: config.hourSeconds * 1000,
    concurrency: config.concurrency,
    seed: seedOf(privateKey),
    store,
    signal,
    log,
    listNodes: () => targets.list(),
    measure: (node, ended) =>
      measureNode(node, {
        mayReach,
        findSystem: targets.findSystem,
        aggregateOwner: targets.owner,
        referenceFile,
        diagnosticVm: DIAGNOSTIC_VM,
        computeFamily: config.computeFamily === 'ipv6' ? 6 : 0,
        software: config.software,
        trusted,
        ping,
        pause,
        now: Date.now,
        signal: ended,
      }),
    sign: (entries, timeSeconds) => {
      const { serverAddress, tags } = config;
      return signReports(
        entries,
        { signer, serverAddress, system: targets.findSystem(serverAddress), tags },
        timeSeconds,
      );
    },
    send: (report) => sendReport(core, report, signal),
    publishScores: createScoresPublisher({
      core,
      nodeListOwner: config.nodeListOwner,
      hourSeconds: config.hourSeconds,
      everyHours: config.scoresEveryHours,
      tags: config.tags,
      signal,
      log,
    }),
  });
}

/** The whole monitor. Known to the network by the key in `<dataDir>/key`; serves nothing. */
export async function startMonitor(
  config: MonitorConfig,
  { log, signal: hostSignal }: Host,
): Promise<RunningService> {
  const privateKey = await loadOrCreateKeyFile(join(config.dataDir, 'key'));
  const signer = createSigner(privateKey);
  const store = await HourStore.create(join(config.dataDir, 'hours'), log);
  const trusted = await readAuthorities(config.caFile);
  const stop = new AbortController();
  const signal = AbortSignal.any([hostSignal, stop.signal]);
  const core = new CoreClient({ url: config.coreUrl, signer, signal });
  const parts = { privateKey, signer, core, store, trusted, signal, log };
  const hours = createHours(config, parts, await Targets.create(config, parts));
  log.info({ address: signer.address, core: config.coreUrl }, 'the monitor signs with this address');
  const tasks = [
    runLoop({ name: 'hours', intervalMs: RETRY_MS, signal, log }, () => hours.runHour()),
    runLoop({ name: 'delivery', intervalMs: DELIVERY_MS, signal, log }, () => hours.deliver()),
  ];
  return {
    urls: [],
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(tasks);
    },
  };
}
