import type { Phase, Reason } from '@skerry/protocol';
import type { OpenPorts } from '../../network/host-ports.ts';
import type { VmState } from '../../vm/vm.ts';
import type { InstanceRecord } from '../record/record.ts';
import type { Wanted } from '../wanted.ts';

/** What is, as far as the decision needs it. */
export interface Actual {
  readonly record: Pick<
    InstanceRecord,
    'base' | 'restartId' | 'isPoweredOff' | 'isOwnerStopped' | 'failure' | 'status'
  >;
  /** `none`: there is no QEMU. */
  readonly vm: Exclude<VmState, 'gone'> | 'none';
  /** What the firewall lets through now; null where nothing was set up yet. */
  readonly open: OpenPorts | null;
  /** The guest never said that it is up, but its address answers and it had its time. */
  readonly isSilentButThere: boolean;
}

/** The next thing to do. One at a time: after each, everything is looked at again. */
export type Step =
  /** Forget what kept the instance from running; somebody asked again. */
  | { readonly do: 'renew' }
  | { readonly do: 'prepare' }
  | { readonly do: 'start' }
  /** Try to speak with a QEMU that does not answer. */
  | { readonly do: 'reach' }
  /** Shut the guest down, whatever the reason. */
  | { readonly do: 'stop' }
  /** The guest powered itself off: end the QEMU that waited to tell. */
  | { readonly do: 'collect' }
  | { readonly do: 'firewall' }
  /** The instance belongs to another node now. */
  | { readonly do: 'release' }
  | { readonly do: 'rest'; readonly phase: Phase; readonly reason: Reason | null };

export const REASONS = {
  waiting: {
    code: 'WAITING_FOR_OTHERS',
    message: 'waiting for other virtual machines to start',
  },
  guestShutdown: {
    code: 'GUEST_SHUTDOWN',
    message: 'the guest powered itself off; restart the instance to run it again',
  },
  ownerStopped: {
    code: 'OWNER_STOPPED',
    message: 'the owner stopped it on the node; restart the instance to run it again',
  },
  hostFull: {
    code: 'STORAGE_FULL',
    message: "the node's disk is full: the guest is paused, loses nothing, and continues when there is space",
  },
  qemuSilent: { code: 'INTERNAL', message: "this machine's QEMU is running but does not answer" },
  guestSilent: {
    code: 'GUEST_SILENT',
    message: 'the address answers, but the guest has not reported that it is up',
  },
  guestAbsent: {
    code: 'GUEST_SILENT',
    message:
      'the guest has not reported that it is up, and its address does not answer; its log says how far it came',
  },
} as const satisfies Record<string, Reason>;

/** What to do next with an instance. Pure: everything it depends on is an argument. `wanted` is null when it is not ours any more. */
export function decideStep(wanted: Wanted | null, actual: Actual): Step {
  const { record, vm } = actual;
  // A stop that the end of an earlier process cut off did what it was for: it was not the guest's own doing.
  if (vm === 'off') return { do: record.status?.phase === 'stopping' ? 'stop' : 'collect' };
  if (wanted === null) return vm === 'none' ? { do: 'release' } : { do: 'stop' };
  const isHeldBack = record.isPoweredOff || record.failure !== null;
  if (!wanted.isRunning) {
    if (vm !== 'none') return { do: 'stop' };
    // A start that follows is a new wish.
    return isHeldBack || isRestartAsked(wanted, actual) ? { do: 'renew' } : rest('stopped');
  }
  if (isRestartAsked(wanted, actual)) return vm === 'none' ? { do: 'renew' } : { do: 'stop' };
  if (vm === 'none') {
    if (record.failure !== null) return rest('failed', record.failure);
    if (record.isPoweredOff)
      return rest('stopped', record.isOwnerStopped ? REASONS.ownerStopped : REASONS.guestShutdown);
    return record.base === null ? { do: 'prepare' } : { do: 'start' };
  }
  if (actual.open === null || !isSameOpen(wanted, actual.open)) return { do: 'firewall' };
  if (vm === 'silent') return { do: 'reach' };
  // Its record was lost while it ran: what its disk needs is noted anew.
  if (record.base === null && record.failure === null) return { do: 'prepare' };
  if (vm === 'ready') return rest('running');
  return actual.isSilentButThere ? rest('running', REASONS.guestSilent) : rest('starting');
}

/** Whether a step waits for nothing that its owner asks of the node: whoever asked without pause would keep what is to end. Pure. */
export const isUrgent = (step: Step): boolean => step.do === 'stop' || step.do === 'release';

function isRestartAsked(wanted: Wanted, { record }: Actual): boolean {
  return wanted.restartId !== null && wanted.restartId !== record.restartId;
}

function rest(phase: Phase, reason: Reason | null = null): Step {
  return { do: 'rest', phase, reason };
}

function isSameOpen(one: OpenPorts, other: OpenPorts): boolean {
  return (
    isSameList(one.allowedPorts, other.allowedPorts) &&
    isSameList(one.allowedUdpPorts ?? [], other.allowedUdpPorts ?? [])
  );
}

function isSameList(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}
