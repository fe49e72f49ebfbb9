import type { CoreClient } from '@skerry/client';
import { AppError, type InstanceView } from '@skerry/protocol/forms';
import type { Progress } from '../output/progress.ts';
import { renderDuration } from '../output/text.ts';
import { decideGoal, type Goal } from './goal.ts';
import { renderPhase } from './render.ts';

export interface WaitOptions {
  readonly wait?: boolean;
  /** Milliseconds. */
  readonly waitTimeout: number;
}

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
  readonly timeoutMs: number;
  readonly graceMs?: number;
  readonly progress: Progress;
}

/**
 * Follows the core node's events until the goal is reached. Never asks twice.
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
  throw limits.unplaced && last !== undefined ? unplaced(last, request) : timedOut(last, request);
}

interface Limits {
  readonly signal: AbortSignal;
  readonly unplaced: boolean;
  look(instance: InstanceView): void;
  end(): void;
}

/** Two clocks: one for the whole wait, one for being without a node. */
function startLimits({ timeoutMs, graceMs = PLACEMENT_GRACE_MS }: WaitRequest): Limits {
  const stop = new AbortController();
  const timeout = setTimeout(() => stop.abort(), timeoutMs);
  let grace: NodeJS.Timeout | undefined;
  let told: string | undefined;
  let unplaced = false;
  return {
    signal: stop.signal,
    get unplaced() {
      return unplaced;
    },
    look(instance) {
      const why = instance.node_id === null ? (instance.reason?.message ?? '') : undefined;
      if (why === told) return;
      told = why;
      clearTimeout(grace);
      if (why === undefined) return;
      grace = setTimeout(() => {
        unplaced = true;
        stop.abort();
      }, graceMs);
    },
    end() {
      clearTimeout(timeout);
      clearTimeout(grace);
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

function timedOut(instance: InstanceView | undefined, { instanceId, timeoutMs }: WaitRequest): AppError {
  const where = instance === undefined ? 'no news of it' : `it is ${renderPhase(instance)}`;
  const hint = 'it continues in the background';
  return new AppError('TIMED_OUT', `stopped waiting after ${renderDuration(timeoutMs)}: ${where}`, {
    details: instance === undefined ? { hint, instance_id: instanceId } : detailsOf(instance, hint),
  });
}

/** A cursor of now. */
export async function readCursor(core: CoreClient): Promise<string> {
  return (await core.listInstances({ limit: 1 })).cursor;
}
