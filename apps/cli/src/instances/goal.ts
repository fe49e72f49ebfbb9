import type { InstanceView } from '@skerry/protocol';

/** What one waits for. */
export type Goal =
  | { readonly kind: 'created' }
  | { readonly kind: 'started' }
  | { readonly kind: 'stopped' }
  /** `restartId`: the hash of the message that asked for it. */
  | { readonly kind: 'restarted'; readonly restartId: string };

export type GoalState = 'reached' | 'failed' | 'going';

/**
 * How far an instance is on the way to a goal.
 * @param moved whether its phase was seen to change since it was asked for: what was so before says nothing
 */
export function decideGoal(goal: Goal, instance: InstanceView, moved: boolean): GoalState {
  const { phase } = instance;
  switch (goal.kind) {
    case 'created':
      return phase === 'running' ? 'reached' : phase === 'failed' ? 'failed' : 'going';
    case 'started':
      if (phase === 'running' && instance.desired === 'running') return 'reached';
      return phase === 'failed' && moved ? 'failed' : 'going';
    case 'restarted':
      if (!moved || instance.restart_id !== goal.restartId) return 'going';
      return phase === 'running' ? 'reached' : phase === 'failed' ? 'failed' : 'going';
    case 'stopped':
      if (instance.desired !== 'stopped') return 'going';
      // Where no node was chosen there is nothing to stop.
      return phase === 'stopped' || instance.node_id === null ? 'reached' : 'going';
  }
}
