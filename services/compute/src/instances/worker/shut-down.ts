import { type Logger, pause } from '@skerry/kit';
import type { Vm } from '../../vm/vm.ts';

/** How long a guest may take to shut down before its power is cut. Software emulation is slow. */
const STOP_DEADLINE_MS = 90_000;
/** A guest that is still booting does not hear the first press. */
const POWER_BUTTON_EVERY_MS = 5_000;

/**
 * Asks a guest to shut down. Resolves when it did, or when its time is up; its QEMU is still there. Nothing is asked of a QEMU that is
 * silent; one that becomes so may only be slow, as while it writes what the guest left to it, and has its time all the same.
 */
export async function shutDown(vm: Vm, signal: AbortSignal, log: Logger): Promise<void> {
  const deadline = AbortSignal.timeout(STOP_DEADLINE_MS);
  if (isSilent(vm)) return;
  while (isOn(vm)) {
    signal.throwIfAborted();
    if (deadline.aborted) {
      log.warn(`the guest did not shut down within ${STOP_DEADLINE_MS} ms and was powered off`);
      return;
    }
    const asked = isSilent(vm) ? vm.reach() : vm.pressPowerButton();
    await asked.catch((error) => log.debug({ err: error }, 'QEMU rejected the power button'));
    const either = new AbortController();
    if (isOn(vm))
      await Promise.race([
        vm.changed,
        pause(POWER_BUTTON_EVERY_MS, AbortSignal.any([signal, either.signal])),
      ]);
    either.abort();
  }
}

const isSilent = (vm: Vm): boolean => vm.state === 'silent';

function isOn(vm: Vm): boolean {
  return vm.state !== 'off' && vm.state !== 'gone';
}
