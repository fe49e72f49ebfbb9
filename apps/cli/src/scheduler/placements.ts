import { call } from '@skerry/client/call';
import { type ReasonView, type ResourcesView, SCHEDULER_API } from '@skerry/protocol/api/scheduler';
import { parseItemHash } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { EXIT } from '../exit-codes.ts';
import { findInstance } from '../instances/find.ts';
import { plainText, renderFields, renderTable } from '../output/text.ts';

export interface SchedulerOptions {
  readonly scheduler?: string;
}

export interface SimulateOptions extends SchedulerOptions {
  readonly cpu: number;
  readonly memory: number;
  readonly disk: number;
}

const HASH = /^[0-9a-f]{64}$/i;
const ID_CHARS_SHOWN = 12;
const SIMULATE_TIMEOUT_MS = 10_000;

const urlOf = async ({ findService }: Context, { scheduler }: SchedulerOptions) =>
  scheduler ?? (await findService('scheduler'));
const shortOf = (id: string | null) => id?.slice(0, ID_CHARS_SHOWN) ?? '-';
const scoreOf = (score: number | null) => (score === null ? '-' : score.toFixed(3));
const sizeOf = ({ cpu, memory_mib, disk_gib }: ResourcesView) =>
  `${cpu} cores, ${memory_mib} MiB, ${disk_gib} GiB`;
const whyOf = (reason: ReasonView | null) =>
  reason === null ? '' : plainText(`${reason.code}: ${reason.message}`);

/** Why a machine is where it is: what was decided, and how every node stands to it. */
export async function explainPlacement(
  context: Context,
  reference: string,
  options: SchedulerOptions,
): Promise<void> {
  const hash = HASH.test(reference)
    ? parseItemHash(reference)
    : (await findInstance(context, reference)).instance_id;
  const answer = await call(await urlOf(context, options), SCHEDULER_API.explainPlacement, {
    params: { vm_hash: hash },
    query: {},
  });
  const { needs, node_id, vm_ipv6, verdict, decisions, nodes, candidates } = answer;
  const facts = renderFields([
    ['instance', hash],
    ['needs', sizeOf(needs)],
    ['node', node_id ?? 'none'],
    ['ipv6', vm_ipv6 ?? 'none'],
    ['verdict', plainText(`${verdict.code}: ${verdict.message}`)],
    [
      'nodes',
      Object.entries(nodes)
        .map(([code, count]) => `${count} ${code}`)
        .join(', ') || 'none known',
    ],
  ]);
  const { width } = context.output;
  const history = renderTable(
    ['DECIDED', 'WHAT', 'FROM', 'TO', 'WHY'],
    decisions.map((one) => [
      one.decided_at,
      one.kind,
      shortOf(one.from),
      shortOf(one.node_id),
      whyOf(one.reason),
    ]),
    width,
  );
  const table = renderTable(
    ['CANDIDATE', 'WEIGHT', 'FREE', 'SCORE', 'TRUST', 'AGAINST'],
    candidates.map((one) => [
      shortOf(one.node_id),
      one.weight.toFixed(3),
      one.free_share.toFixed(3),
      scoreOf(one.score),
      plainText(one.trust),
      whyOf(one.against),
    ]),
    width,
  );
  context.output.result(answer, [facts, history, table].filter((part) => part !== '').join('\n\n'));
}

/** The compute nodes as the scheduler sees them. */
export async function listSchedulerNodes(context: Context, options: SchedulerOptions): Promise<void> {
  const answer = await call(await urlOf(context, options), SCHEDULER_API.listNodes, {});
  const rows = answer.nodes.map((node) => [
    shortOf(node.node_id),
    plainText(node.url ?? ''),
    String(node.instances),
    `${sizeOf(node.free)} of ${sizeOf(node.limits)}`,
    scoreOf(node.score),
    node.weight.toFixed(3),
    plainText(node.trust),
    whyOf(node.leaving ?? node.reason),
  ]);
  const heads = ['NODE', 'URL', 'INSTANCES', 'FREE', 'SCORE', 'WEIGHT', 'TRUST', 'TAKES NOTHING NEW'];
  context.output.result(
    answer,
    renderTable(heads, rows, context.output.width) || 'no compute nodes are known',
  );
}

/** What runs where, and what waits. */
export async function showPlan(context: Context, options: SchedulerOptions): Promise<void> {
  const answer = await call(await urlOf(context, options), SCHEDULER_API.getPlan, {});
  const placed = Object.entries(answer.plan).flatMap(([nodeId, { instances }]) =>
    instances.map((hash) => [hash, shortOf(nodeId), '']),
  );
  const waiting = answer.waiting.map(({ vm_hash: hash, reason }) => [hash, 'waits', whyOf(reason)]);
  const table = renderTable(['INSTANCE', 'NODE', 'WHY'], [...placed, ...waiting], context.output.width);
  const facts = `plan of ${answer.period.start_timestamp}`;
  context.output.result(answer, table === '' ? `${facts}\nno instances` : `${facts}\n\n${table}`);
}

/** Whether a machine of this size could be placed now. Exit code 5 where not. */
export async function simulatePlacement(context: Context, options: SimulateOptions): Promise<number> {
  const { cpu, memory, disk } = options;
  // "No" is an answer here, with a status of its own.
  const answer = await call(
    await urlOf(context, options),
    SCHEDULER_API.simulatePlacement,
    { query: { vcpus: cpu, memory, disk } },
    { timeoutMs: SIMULATE_TIMEOUT_MS },
  );
  const text = answer.schedulable
    ? `could be placed on ${answer.node_id}`
    : `could not be placed: ${answer.reasons.map(plainText).join('; ')}`;
  context.output.result(answer, text);
  return answer.schedulable ? EXIT.ok : EXIT.unavailable;
}
