import type { CoreClient } from '@skerry/client';
import { AppError, type InstanceView } from '@skerry/protocol/forms';
import type { Progress } from '../output/progress.ts';
import { renderDuration } from '../output/text.ts';
import { decideGoal, type Goal } from './goal.ts';
import { renderPhase, shortId } from './render.ts';

export interface WaitOptions {
  readonly wait?: boolean;
  /** Milliseconds, in all; the usual limits where nobody says it. */
  readonly waitTimeout?: number;
}

/** How long something is waited for, in milliseconds. */
export interface WaitLimits {
  readonly wholeMs: number;
  /** Without news of it. */
  readonly stillMs: number;
}

/** An image is built or fetched for as long as that takes on a slow machine: what still changes is on its way. */
const USUAL_LIMITS: WaitLimits = { wholeMs: 6 * 3_600_000, stillMs: 900_000 };

export const waitLimits = ({ waitTimeout: ms }: Pick<WaitOptions, 'waitTimeout'>): WaitLimits =>
  ms === undefined ? USUAL_LIMITS : { wholeMs: ms, stillMs: ms };

/** How long an instance may be without a node, for one and the same reason. A node that has just come may need a moment. */
const PLACEMENT_GRACE_MS = 60_000;

const AT_REST: ReadonlySet<InstanceView['phase']> = new Set(['running', 'stopped', 'failed']);

export interface WaitRequest {
  readonly core: CoreClient;
  readonly instanceId: string;
  readonly goal: Goal;
  /** Of before the goal was asked for, so that no change is missed. */
  readonly cursor: string;
  /** The phase then; undefined for a new instance. */
  readonly phaseBefore: InstanceView['phase'] | undefined;
  /** The scheduler has chosen a node before the wait began: that it is waited for is no news any more. */
  readonly isPlaced?: boolean;
  readonly limits: WaitLimits;
  readonly graceMs?: number;
  readonly progress: Progress;
}

/**
 * Follows the core node's events until the goal is reached, for as long as something changes. Never asks twice.
 * @throws AppError VM_START_FAILED, NO_CAPACITY (no node within the grace), TIMED_OUT
 */
export async function waitForInstance(request: WaitRequest): Promise<InstanceView> {
  const { core, instanceId, goal, progress } = request;
  const limits = startLimits(request);
  let { isPlaced = false } = request;
  let moved = false;
  let last: InstanceView | undefined;
  const onDisconnect = () => progress.show('the core node does not answer; retrying');
  try {
    for await (const event of core.events({ cursor: request.cursor, signal: limits.signal, onDisconnect })) {
      if (event.kind !== 'instance' || event.data.instance_id !== instanceId) continue;
      last = event.data;
      moved ||= last.phase !== request.phaseBefore;
      // The message that asked for it is an event too; it shows the rest from which things then move.
      if (isPlaced && last.node_id === null) continue;
      isPlaced = false;
      if (moved || !AT_REST.has(last.phase)) progress.show(renderPhase(last));
      const state = decideGoal(goal, last, moved);
      if (state === 'reached') return last;
      if (state === 'failed') throw failed(last);
      limits.look(last);
    }
  } finally {
    limits.end();
  }
  throw limits.reached === 'graceMs' && last !== undefined
    ? unplaced(last, request)
    : timedOut(last, request, limits.reached);
}

type Limit = keyof WaitLimits | 'graceMs';

interface Limits {
  readonly signal: AbortSignal;
  /** Which of them ended the wait. */
  readonly reached: Limit;
  look(instance: InstanceView): void;
  end(): void;
}

/** Three clocks: for the whole wait, for being without news, and for being without a node. */
function startLimits({ limits: { wholeMs, stillMs }, graceMs = PLACEMENT_GRACE_MS }: WaitRequest): Limits {
  const stop = new AbortController();
  let reached: Limit = 'wholeMs';
  const startClock = (limit: Limit, ms: number) =>
    setTimeout(() => {
      reached = limit;
      stop.abort();
    }, ms);
  const whole = startClock('wholeMs', wholeMs);
  let still = startClock('stillMs', stillMs);
  let grace: NodeJS.Timeout | undefined;
  let news: string | undefined;
  let told: string | undefined;
  return {
    signal: stop.signal,
    get reached() {
      return reached;
    },
    look(instance) {
      const now = `${instance.node_id} ${renderPhase(instance)}`;
      if (now !== news) {
        clearTimeout(still);
        still = startClock('stillMs', stillMs);
      }
      news = now;
      const why = instance.node_id === null ? (instance.reason?.message ?? '') : undefined;
      if (why === told) return;
      told = why;
      clearTimeout(grace);
      if (why !== undefined) grace = startClock('graceMs', graceMs);
    },
    end() {
      for (const clock of [whole, still, grace]) clearTimeout(clock);
    },
  };
}

const detailsOf = ({ instance_id, phase, reason }: InstanceView, hint: string) => ({
  hint,
  instance_id,
  phase,
  reason,
});

function failed(instance: InstanceView): AppError {
  return new AppError('VM_START_FAILED', instance.reason?.message ?? 'the virtual machine failed', {
    details: detailsOf(instance, `"skerry instance start ${instance.instance_id}" tries again`),
  });
}

function unplaced(instance: InstanceView, { graceMs = PLACEMENT_GRACE_MS }: WaitRequest): AppError {
  const why = instance.reason?.message ?? 'no reason was given';
  return new AppError('NO_CAPACITY', `no compute node was chosen within ${renderDuration(graceMs)}: ${why}`, {
    details: detailsOf(instance, 'the request stays in place and starts when a node has room'),
  });
}

function timedOut(
  instance: InstanceView | undefined,
  { instanceId, limits: { wholeMs, stillMs } }: WaitRequest,
  reached: Limit,
): AppError {
  const where = instance === undefined ? 'no news of it' : `it is ${renderPhase(instance)}`;
  const over =
    reached === 'stillMs' && stillMs < wholeMs
      ? `nothing has changed for ${renderDuration(stillMs)}`
      : `stopped waiting after ${renderDuration(wholeMs)}`;
  const hint = `it goes on without this command: "skerry instance show ${shortId(instanceId)}" tells how far it is`;
  return new AppError('TIMED_OUT', `${over}: ${where}`, {
    details: instance === undefined ? { hint, instance_id: instanceId } : detailsOf(instance, hint),
  });
}

/** A cursor of now. */
export async function readCursor(core: CoreClient): Promise<string> {
  return (await core.listInstances({ limit: 1 })).cursor;
}
