import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CoreClient, createSigner } from '@skerry/client';
import {
  createReach,
  type Host,
  loadOrCreateKeyFile,
  pause,
  type RunningService,
  runLoop,
} from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type FindSystem, loadSystems } from './asn.ts';
import type { MonitorConfig } from './config.ts';
import type { Clock } from './follow-plan.ts';
import { Hours } from './hours.ts';
import { Journal } from './journal.ts';
import {
  listAnnouncedNodes,
  makeReferenceFile,
  readListedNodes,
  sendReport,
  storeNodeList,
  storeReferenceFile,
} from './network.ts';
import { distinctNodes, type MeasuredNode, parseCoreNode } from './node-list.ts';
import { measureNode } from './probe/measure.ts';
import { ping } from './probe/ping.ts';
import { signReport } from './report.ts';
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

async function readAuthorities(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  return readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new AppError('INVALID_CONFIG', `the certificate authorities cannot be read (${cause.code})`, {
      cause,
    });
  });
}

/** The whole monitor. Known to the network by the key in `<dataDir>/key`; serves nothing. */
export async function startMonitor(
  config: MonitorConfig,
  { log, signal: hostSignal }: Host,
): Promise<RunningService> {
  const privateKey = await loadOrCreateKeyFile(join(config.dataDir, 'key'));
  const signer = createSigner(privateKey);
  const journal = await Journal.create(join(config.dataDir, 'hours'));
  const ca = await readAuthorities(config.caFile);
  let findSystem: FindSystem = await loadSystems(config.asnFile);
  const stop = new AbortController();
  const signal = AbortSignal.any([hostSignal, stop.signal]);
  const core = new CoreClient({ url: config.coreUrl, signer, signal });
  const owner = config.nodeListOwner ?? signer.address;
  const referenceFile = config.referenceFile ?? makeReferenceFile().hash;
  const ownCore = parseCoreNode(config.coreUrl);
  const mayReach = createReach(config.allowPrivate);
  let storedList = '';

  async function listNodes(): Promise<MeasuredNode[]> {
    findSystem = await loadSystems(config.asnFile);
    const listed =
      config.nodeListOwner === undefined ? [ownCore] : await readListedNodes({ core, signal }, owner);
    const announced = config.announcedNodes ? await listAnnouncedNodes({ core, signal }) : [];
    const nodes = distinctNodes([...config.coreNodes, ...listed, ...announced]);
    await keepReferences(nodes);
    await keepReleases(core, config.releases, Date.now());
    return nodes;
  }

  /** What the network does not have, the monitor brings: a node list and a file to fetch. */
  async function keepReferences(nodes: readonly MeasuredNode[]): Promise<void> {
    if (config.referenceFile === undefined && storedList === '') await storeReferenceFile(core);
    const list = JSON.stringify(nodes);
    if (config.nodeListOwner === undefined && list !== storedList) await storeNodeList(core, nodes);
    storedList = list;
  }

  const hours = new Hours({
    clock,
    hourMs: config.hourSeconds * 1000,
    concurrency: config.concurrency,
    seed: seedOf(privateKey),
    journal,
    signal,
    log,
    listNodes,
    measure: (node, ended) =>
      measureNode(node, {
        mayReach,
        findSystem,
        aggregateOwner: owner,
        referenceFile,
        diagnosticVm: config.diagnosticVm,
        computeFamily: config.computeFamily === 'ipv6' ? 6 : 0,
        software: config.software,
        ca,
        ping,
        pause,
        now: Date.now,
        signal: ended,
      }),
    sign: (entries, timeSeconds) => {
      const { serverAddress, tags } = config;
      return signReport(
        entries,
        { signer, serverAddress, system: findSystem(serverAddress), tags },
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
