import { pause } from '@skerry/kit';
import type { Vm } from '../../vm/vm.ts';
import type { ConsoleLog } from './console-log.ts';

/** QEMU keeps so much in between that only a guest that prints megabytes a second loses lines. */
const READ_EVERY_MS = 1_000;
/** At most so many readings in a row: a guest may print faster than is read. */
const READS_MAX = 16;

/** Moves what a guest said from QEMU's memory to the log. */
export async function drainConsole(vm: Vm, log: ConsoleLog): Promise<void> {
  for (let count = 0; count < READS_MAX; count++) {
    const bytes = await vm.readConsole();
    if (bytes.length === 0) return;
    await log.append(bytes);
  }
}

/** Does so every second, until QEMU is gone or the signal ends. */
export async function followConsole(vm: Vm, log: ConsoleLog, signal: AbortSignal): Promise<void> {
  while (vm.state !== 'gone' && !signal.aborted) {
    await drainConsole(vm, log);
    await pause(READ_EVERY_MS, signal);
  }
  await log.finish();
}
