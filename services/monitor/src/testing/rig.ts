import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSigner, generatePrivateKey } from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { parseMetricsReport } from '@skerry/protocol';
import { HourStore, type SignedReport } from '../hour-store.ts';
import { Hours, type HoursOptions } from '../hours.ts';
import { signReports } from '../report.ts';
import { nodeAt, VirtualClock } from './scene.ts';

/** A monitor's hours without a network: nodes that answer at once, and a clock that jumps. */

export const HOUR_MS = 3_600_000;
export const START = 494_520 * HOUR_MS;
export const signer = createSigner(generatePrivateKey());
export const log = createLogger('monitor', 'silent');
export const nodes = ['a', 'b', 'c', 'd', 'e'].map((digit) => nodeAt('compute', 'http://node.test/', digit));

interface Sent {
  readonly itemHash: string;
  readonly time: number;
  readonly nodeIds: string[];
}

export function readSent(report: SignedReport): Sent {
  const { message } = JSON.parse(report.body);
  const content = JSON.parse(message.item_content ?? report.content);
  const { compute } = parseMetricsReport(content.content);
  return {
    itemHash: report.itemHash,
    time: message.time,
    nodeIds: compute.map((record) => record.nodeId).sort(),
  };
}

export async function createRig() {
  const dir = await mkdtemp(join(tmpdir(), 'skerry-monitor-'));
  const clock = new VirtualClock(START + 1_000);
  const openStore = async () => clock.stopDuring(await HourStore.create(join(dir, 'hours'), log));
  const store = await openStore();
  const sent: Sent[] = [];
  const measured: string[] = [];
  /** A monitor on the same directory: another life of the same one. */
  const create = (stop: AbortController, own: Partial<HoursOptions> = {}) =>
    new Hours({
      clock,
      hourMs: HOUR_MS,
      concurrency: 1,
      seed: 'seed',
      store,
      signal: stop.signal,
      log,
      listNodes: async () => nodes,
      measure: async (node) => {
        measured.push(node.nodeId);
        return { node_id: node.nodeId, measured_at: clock.now() / 1000 };
      },
      sign: (entries, time) =>
        signReports(entries, { signer, serverAddress: '', system: undefined, tags: [] }, time),
      send: async (report) => void sent.push(readSent(report)),
      ...own,
    });
  const dispose = () => rm(dir, { recursive: true });
  return {
    dir: join(dir, 'hours'),
    store,
    openStore,
    clock,
    sent,
    measured,
    create,
    [Symbol.asyncDispose]: dispose,
  };
}

/** Ids of the nodes. */
export const all = nodes.map((node) => node.nodeId);
