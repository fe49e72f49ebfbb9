import type { Logger } from '@skerry/kit';
import type { Phase, Reason } from '@skerry/protocol';
import type { Vm } from '../../vm/vm.ts';
import type { InstanceDeps } from '../deps.ts';
import type { Place } from '../place.ts';
import type { StoredRecord } from '../record/stored-record.ts';
import { REASONS } from './diff.ts';
import type { MachineProcess } from './machine-process.ts';
import { hasRoom } from './preparation.ts';
import { isAbsent, Relapses, SILENCE } from './silence.ts';
import { FOREVER_MS } from './sleep.ts';

/** How long an instance waits for room on the node's disk until it is looked again. */
export const ROOM_RECHECK_MS = 5_000;

export interface ObserverOptions {
  readonly deps: Pick<InstanceDeps, 'dataDir' | 'now' | 'network'>;
  readonly place: Place;
  readonly stored: StoredRecord;
  readonly machine: MachineProcess;
  readonly log: Logger;
}

/** Says how an instance is with which nothing is to be done, and when to look again. */
export class Observer {
  readonly #options: ObserverOptions;
  readonly #relapses = new Relapses();

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  /** Returns how long to rest after it unless something happens, 0 to decide anew at once. */
  async report(phase: Phase, reason: Reason | null): Promise<number> {
    const { machine, stored } = this.#options;
    const { vm, isSilentButThere } = machine;
    if (vm?.isStalled) return this.#waitForRoom(vm, phase);
    if (phase === 'starting') return this.#waitForGuest();
    await stored.setPhase(phase, reason);
    return isSilentButThere ? SILENCE.own.recheckMs : FOREVER_MS;
  }

  /** QEMU stops a guest whose write finds no room on the host: it goes on by itself when there is some. */
  async #waitForRoom(vm: Vm, phase: Phase): Promise<number> {
    const { deps, stored, log } = this.#options;
    if (await hasRoom(deps.dataDir)) {
      await vm.resume();
      log.warn("the guest continues: the node's disk has space again");
      return 0;
    }
    await stored.setPhase(phase, REASONS.hostFull);
    return ROOM_RECHECK_MS;
  }

  async #waitForGuest(): Promise<number> {
    const { deps, place, stored, machine } = this.#options;
    const { kernel, status } = stored.record;
    const untoldMs = status?.phase === 'running' ? this.#relapses.note(deps.now()) : 0;
    if (untoldMs > 0) return untoldMs;
    const isTold = status?.phase === 'starting' && status.reason?.message === REASONS.guestAbsent.message;
    if (!isTold) await stored.setPhase('starting', null);
    const silentMs = await stored.bootAge();
    const { limitMs, recheckMs } = kernel === null ? SILENCE.stranger : SILENCE.own;
    if (silentMs < limitMs) return limitMs - silentMs;
    const { tap, guest, mac } = place;
    machine.isSilentButThere = await deps.network.answers(tap, guest, mac);
    if (machine.isSilentButThere) return 0;
    const startingMs = deps.now() - (stored.record.phaseTimesMs.starting ?? 0);
    if (isAbsent(silentMs, startingMs)) await stored.setPhase('starting', REASONS.guestAbsent);
    return recheckMs;
  }
}
