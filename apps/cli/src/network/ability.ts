import { call } from '@skerry/client/call';
import { pause } from '@skerry/kit';
import type { Runner } from '@skerry/protocol';
import { NODE_API, type NodeConfigView } from '@skerry/protocol/api/compute/node';
import { CREDIT_API, type CreditStatusView } from '@skerry/protocol/api/credit';
import { readTrust } from '../nodes/trust.ts';
import { ASIDE } from './gateway.ts';

export const getNodeConfig = (url: string): Promise<NodeConfigView> =>
  call(url, NODE_API.getNodeConfig, {}, ASIDE);

export const getCreditStatus = (url: string): Promise<CreditStatusView> =>
  call(url, CREDIT_API.getCreditStatus, {}, ASIDE);

/** One line about what a credit service sells. */
export function describeCredit({
  sales,
  enforcement,
}: Pick<CreditStatusView, 'sales' | 'enforcement'>): string {
  const sold = sales.map(({ token, network }) => `${token} on ${network}`).join(', ');
  const bought =
    sold === '' ? 'no chain is configured, so nothing can be bought' : `sells credits for ${sold}`;
  return `charges for usage; ${bought}; ${enforcement ? 'instances without credit are stopped' : 'nothing is stopped'}`;
}

/** So long a daemon that has just come up may be too busy to say what it can do. */
const START_MS = 20_000;
const START_LOOK_MS = 100;

/** What a daemon says of itself; undefined where it does not within the time, or the signal comes. */
async function hear<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const untilMs = performance.now() + START_MS;
  do {
    const said = await ask().catch(() => undefined);
    if (said !== undefined) return said;
  } while (performance.now() < untilMs && (await pause(START_LOOK_MS, signal)));
  return undefined;
}

/** @param url undefined: it does not run */
export async function findCreditAbility(url: string | undefined, signal: AbortSignal): Promise<string> {
  if (url === undefined) return 'the credit service is not running';
  const said = await hear(() => getCreditStatus(url), signal);
  return said === undefined ? UNKNOWN : describeCredit(said);
}

const UNKNOWN = 'capabilities unknown';

/** What a compute node can run, and one line about it. */
export interface Ability {
  readonly machines: boolean;
  readonly programs: boolean;
  readonly text: string;
}

function describeMachines({ computing, reason }: Pick<NodeConfigView, 'computing' | 'reason'>): string {
  if (reason) return `no virtual machines: ${reason.message}`;
  const { ACCELERATOR: accelerator, ACCELERATOR_REASON: why } = computing;
  if (accelerator === undefined) return UNKNOWN;
  if (accelerator === null) return 'virtual machines; KVM is tested when the first one starts';
  if (accelerator === 'kvm') return 'virtual machines with hardware acceleration (KVM)';
  return `virtual machines by software emulation, which is slow (${why})`;
}

/** One line about what a compute node can do. */
export function describeAbility(config: Pick<NodeConfigView, 'computing' | 'reason' | 'programs'>): string {
  const why = config.programs?.reason;
  return [describeMachines(config), ...(why ? [`no programs: ${why}`] : [])].join('; ');
}

/** @param url undefined: it does not run */
export async function findComputeAbility(url: string | undefined, signal: AbortSignal): Promise<Ability> {
  if (url === undefined)
    return {
      machines: false,
      programs: false,
      text: 'no virtual machines or programs: the compute node is not running',
    };
  const config = await hear(() => getNodeConfig(url), signal);
  if (config === undefined) return { machines: true, programs: true, text: UNKNOWN };
  return {
    machines: !config.reason,
    programs: !config.programs?.reason,
    text: describeAbility(config),
  };
}

/** A scheduler looks three times at a node that just came up within this time, or something is wrong with it. */
const RUNNER_WAIT_MS = 30_000;
const RUNNER_LOOK_MS = 50;
/** Of the latest lists of runners of one scheduler, so many are looked at. */
const SCHEDULER_LISTS = 8;

/** The compute nodes that run programs, by the latest lists of the schedulers that the core node trusts. What anybody else says of them counts for nothing. */
export async function listRunners(coreUrl: string): Promise<Runner[]> {
  const [{ NETWORK_LISTS_API }, { foldRunners, NETWORK_POST, parseRunnersContent }, { schedulers }] =
    await Promise.all([
      import('@skerry/protocol/api/core/deployed/lists'),
      import('@skerry/protocol/forms'),
      readTrust(coreUrl),
    ]);
  // A busy machine is waited for as long as the answer is.
  const limit = { timeoutMs: RUNNER_WAIT_MS };
  const lists: Parameters<typeof foldRunners>[0][number][] = [];
  // One by one, as core nodes do: one that lists often hides no other.
  for (const scheduler of schedulers.value) {
    const query = {
      contentTypes: NETWORK_POST.runners,
      addresses: scheduler,
      pagination: SCHEDULER_LISTS,
    };
    const { messages } = await call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, { query }, limit);
    for (const { sender, content } of messages)
      lists.push({ sender, content: parseRunnersContent((content as { content?: unknown }).content) });
  }
  return foldRunners(lists);
}

/** Whether a scheduler that the core node trusts has told it of nodes that run programs: that comes a moment after all daemons serve. */
async function waitForRunners(coreUrl: string, signal: AbortSignal): Promise<boolean> {
  const untilMs = performance.now() + RUNNER_WAIT_MS;
  do {
    const runners = await listRunners(coreUrl).catch(() => []);
    if (runners.length > 0) return true;
  } while (performance.now() < untilMs && (await pause(RUNNER_LOOK_MS, signal)));
  return false;
}

/**
 * What a compute node can run of what it can: a program that is called before a scheduler has listed the node is refused.
 * @param urls undefined: it does not run
 */
export async function confirmPrograms(
  ability: Ability,
  { core, scheduler }: { readonly core?: string | undefined; readonly scheduler?: string | undefined },
  signal: AbortSignal,
): Promise<Ability> {
  if (!ability.programs) return ability;
  const without = (why: string) => ({ ...ability, programs: false, text: `${ability.text}; ${why}` });
  if (core === undefined || scheduler === undefined)
    return without('no programs: the core node and the scheduler have to run');
  if (await waitForRunners(core, signal)) return ability;
  return without('no programs yet: the scheduler has not listed this node');
}

/** How many virtual machines run on a node; 0 where it does not answer. */
export async function countRunning(url: string | undefined): Promise<number> {
  if (url === undefined) return 0;
  try {
    return Object.keys(await call(url, NODE_API.listRunningExecutions, {}, ASIDE)).length;
  } catch {
    return 0;
  }
}
