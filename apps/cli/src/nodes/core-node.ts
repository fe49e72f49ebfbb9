import { setTimeout as delay } from 'node:timers/promises';
import { call, type DifferingMessage, diffNodes, type NodeDifference } from '@skerry/client';
import { type HealthView, NODE_API } from '@skerry/protocol/api/core/node';
import { STATE_API, type StateDigestView } from '@skerry/protocol/api/core/state';
import { SYNC_API, type SyncStatusView } from '@skerry/protocol/api/core/sync';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { plainText, renderAge, renderFields, renderTable, renderTime } from '../output/text.ts';
import { differenceFields, differingTrust, readTrust, type TrustDifference, trustFields } from './trust.ts';

const MINUTE_S = 60;

/** When a session last came to its end: in seconds, since a peer is behind after some of them. */
function ageOf(milliseconds: number | null): string {
  if (milliseconds === null) return '';
  const seconds = Math.max(0, Math.round((Date.now() - milliseconds) / 1000));
  return seconds < MINUTE_S ? `${seconds} s ago` : renderAge(seconds);
}

/** A peer's clock, or the median of them, against that of the node's machine. */
function renderOffset(milliseconds: number | null): string {
  if (milliseconds === null) return '';
  const seconds = Math.round(milliseconds / 1000);
  if (seconds === 0) return 'the same';
  return `${Math.abs(seconds)} s ${seconds > 0 ? 'ahead' : 'behind'}`;
}

/** Of a session, or of the comparison of what is forgotten alone. */
function failureOf({ failure, forgotten_failure: forgotten }: SyncStatusView['peers'][number]): string {
  return failure ?? (forgotten ? `forgotten: ${forgotten}` : '');
}

function renderClock({ state, offset_ms: offsetMs, clocks }: SyncStatusView['clock']): string {
  if (offsetMs === null) return 'no peer to compare with';
  if (state === 'right') return `agrees with most of ${clocks} clocks`;
  const others = state === 'off' ? `the median of ${clocks} clocks` : 'the clocks of the peers';
  return `WRONG: ${others} is ${renderOffset(offsetMs)}; turn on time synchronisation`;
}

/** What of the node's health nothing else here tells. */
export const toLookAt = ({
  checks: { trust, roles, chains },
}: Pick<HealthView, 'checks'>): string | undefined =>
  [trust.reason, roles?.reason, chains?.reason].filter((reason) => reason !== undefined).join('; ') ||
  undefined;

/** A number of the metrics, where the node knows it. */
function metricOf(metrics: Readonly<Record<string, unknown>>, name: string): number | undefined {
  const value = metrics[name];
  return typeof value === 'number' ? value : undefined;
}

export async function showNodeStatus({ coreUrl, output }: Context): Promise<void> {
  const [sync, metrics, digest, trust, health] = await Promise.all([
    call(coreUrl, SYNC_API.getSyncStatus, {}),
    call(coreUrl, NODE_API.getDeployedMetrics, {}),
    call(coreUrl, STATE_API.getStateDigest, {}),
    readTrust(coreUrl),
    call(coreUrl, NODE_API.getApiHealth, {}),
  ]);
  const facts = renderFields([
    ['state', sync.state],
    ['messages', sync.messages],
    ['behind', sync.behind],
    ['ahead of the clock', sync.later > 0 ? sync.later : undefined],
    ['clock', renderClock(sync.clock)],
    ['pending messages', metricOf(metrics, 'pyaleph_status_sync_pending_messages_total')],
    ['pending transactions', metricOf(metrics, 'pyaleph_status_sync_pending_txs_total')],
    ['chain height remaining', metricOf(metrics, 'pyaleph_status_chain_eth_height_remaining_total')],
    ['digest', digest.messages.digest],
    ...trustFields(trust),
    ['look at', toLookAt(health)],
  ]);
  const rows = sync.peers.map((peer) => [
    plainText(peer.name),
    peer.state,
    String(peer.messages ?? ''),
    String(peer.taken),
    String(peer.given),
    ageOf(peer.synced_ms),
    renderOffset(peer.offset_ms),
    failureOf(peer),
  ]);
  const peers =
    rows.length === 0
      ? 'no peers'
      : renderTable(
          ['PEER', 'STATE', 'MESSAGES', 'TAKEN', 'GIVEN', 'IN STEP', 'CLOCK', 'FAILURE'],
          rows,
          output.width,
        );
  output.result({ url: coreUrl, sync, digest, trust, metrics }, `${facts}\n\n${peers}`);
}

/** Messages that are told to people; programs get all of them. */
const SHOWN_MAX = 50;

/**
 * What follows from equal messages must be equal for nodes that believe the same: a part that is not would be a fault of
 * a node. A part that only one of them tells of is not compared.
 */
function differingParts(first: StateDigestView, second: StateDigestView): string[] {
  const parts = ['messages', ...Object.keys(first.derived).filter((part) => part in second.derived)];
  const of = (view: StateDigestView, part: string) =>
    (part === 'messages' ? view.messages : view.derived[part])?.digest;
  return parts.filter((part) => of(first, part) !== of(second, part));
}

interface Compared {
  readonly onlyFirst: readonly DifferingMessage[];
  readonly onlySecond: readonly DifferingMessage[];
  readonly forgotten: NodeDifference['forgotten'];
  readonly parts: readonly string[];
  readonly trust: readonly TrustDifference[];
  /** How many of these messages are newer than the last session of the node that lacks them. */
  readonly newer: number;
  readonly isSame: boolean;
}

/** How many messages are newer than the end of a node's last session with any peer: the next one may bring them. Pure. */
export function countNewer(lacks: readonly DifferingMessage[], peers: SyncStatusView['peers']): number {
  const lastMs = Math.max(...peers.map(({ synced_ms: ms }) => ms ?? Number.NEGATIVE_INFINITY));
  return Number.isFinite(lastMs) ? lacks.filter(({ time }) => time * 1000 > lastMs).length : 0;
}

async function compareNodes(first: string, second: string): Promise<Compared> {
  const both = <T>(ask: (url: string) => Promise<T>) => Promise.all([ask(first), ask(second)]);
  const [{ onlyFirst, onlySecond, forgotten }, trusts, digests, [one, other]] = await Promise.all([
    diffNodes(first, second),
    both(readTrust),
    both((url) => call(url, STATE_API.getStateDigest, {})),
    both((url) => call(url, SYNC_API.getSyncStatus, {})),
  ]);
  const trust = differingTrust(...trusts);
  const parts = differingParts(...digests);
  const newer = countNewer(onlyFirst, other.peers) + countNewer(onlySecond, one.peers);
  const all = [onlyFirst, onlySecond, parts, trust, ...Object.values(forgotten ?? {})];
  const isSame = all.every((some) => some.length === 0);
  return { onlyFirst, onlySecond, forgotten, parts, trust, newer, isSame };
}

const LOOKS_MAX = 4;
const LOOK_AGAIN_MS = 1_000;

/**
 * Compares up to four times, a second apart, until the nodes are the same: a message that was just sent is at one of them for a
 * moment. Whom they trust stays different however often one looks.
 */
export async function compareUntilSame(
  compare: () => Promise<Compared>,
  rest: () => Promise<unknown> = () => delay(LOOK_AGAIN_MS),
): Promise<Compared> {
  let compared = await compare();
  for (let looks = 1; !compared.isSame && compared.trust.length === 0 && looks < LOOKS_MAX; looks++) {
    await rest();
    compared = await compare();
  }
  return compared;
}

/** A line for each message that differs, and in what. */
function rowsOf(first: string, second: string, { onlyFirst, onlySecond, forgotten }: Compared): string[][] {
  const rows = (some: readonly DifferingMessage[], how: string) =>
    some.map(({ hash, time }) => [hash, renderTime(time), how]);
  return [
    ...rows(onlyFirst, `only at ${first}`),
    ...rows(onlySecond, `only at ${second}`),
    ...rows(forgotten?.onlyFirst ?? [], `forgotten only at ${first}`),
    ...rows(forgotten?.onlySecond ?? [], `forgotten only at ${second}`),
    ...rows(forgotten?.otherwise ?? [], 'forgotten at both, told otherwise'),
  ];
}

function forgottenFields(forgotten: Compared['forgotten']): [string, string | number | undefined][] {
  if (forgotten === null)
    return [['forgotten messages', 'not compared: one of the nodes is of an earlier release']];
  const { onlyFirst, onlySecond, otherwise } = forgotten;
  return [
    ['forgotten only on the first', onlyFirst.length],
    ['forgotten only on the second', onlySecond.length],
    ['forgotten, told otherwise', otherwise.length > 0 ? otherwise.length : undefined],
  ];
}

export async function showNodeDiff({ output }: Context, first: string, second: string): Promise<number> {
  const compared = await compareUntilSame(() => compareNodes(first, second));
  const { onlyFirst, onlySecond, forgotten, parts, trust, newer, isSame } = compared;
  const rows = rowsOf(first, second, compared);
  const more = rows.length > SHOWN_MAX ? `\n${rows.length - SHOWN_MAX} more (use --json to show all)` : '';
  const table =
    rows.length === 0
      ? ''
      : `${renderTable(['MESSAGE', 'TIME', 'DIFFERENCE'], rows.slice(0, SHOWN_MAX), output.width)}${more}\n\n`;
  const facts = renderFields([
    ['verdict', isSame ? 'the same' : 'they differ'],
    // First, since it explains the rest.
    ...differenceFields(trust),
    ['only on the first', onlyFirst.length],
    ['only on the second', onlySecond.length],
    [
      'of these on their way',
      newer > 0 ? `${newer}, newer than the last session of the node that lacks them` : undefined,
    ],
    ...forgottenFields(forgotten),
    ['parts of the state that differ', parts.length > 0 ? parts.join(', ') : undefined],
  ]);
  output.result(
    {
      same: isSame,
      differing_trust: trust,
      only_first: onlyFirst,
      only_second: onlySecond,
      newer_than_last_session: newer,
      forgotten: forgotten && {
        only_first: forgotten.onlyFirst,
        only_second: forgotten.onlySecond,
        told_otherwise: forgotten.otherwise,
      },
      differing_parts: parts,
    },
    `${table}${facts}`,
  );
  return isSame ? EXIT.ok : EXIT.failed;
}
