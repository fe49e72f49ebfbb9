import { spawn } from 'node:child_process';
import { access, constants, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isMissing, type Logger, programEnvironment } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { QEMU_LIMITS, TOOLS_UID } from '../host/users.ts';
import { PROBE_MARKER, PROBE_WORD } from '../images/initrd.ts';
import { probeArguments } from './command-line.ts';
import type { Accelerator } from './machine.ts';
import { QEMU } from './vm.ts';

export interface AccelDecision {
  readonly accelerator: Accelerator;
  readonly why: string;
}

/** What can be seen of hardware virtualisation without trying it. */
export interface KvmSigns {
  /** /dev/kvm can be opened for reading and writing. */
  readonly isDeviceUsable: boolean;
  /** /proc/cpuinfo has vmx or svm. */
  readonly hasProcessorFlag: boolean;
  /** A software stand-in for hardware virtualisation, which only runs kernels that were made for it. */
  readonly isSoftwareBackend: boolean;
}

/** A guest kernel is alive in well under a second with KVM. A hung one never is: it must not hold up the node. */
const PROBE_LIMIT_MS = 5_000;
const PROBE_OUTPUT_CHARS = 65_536;

/** Why KVM is out of the question, or undefined where only a trial can tell. */
export function decideBySigns(signs: KvmSigns): string | undefined {
  if (!signs.isDeviceUsable) return '/dev/kvm cannot be opened';
  if (signs.isSoftwareBackend) return 'the kvm_pvm backend does not run stock kernels';
  if (!signs.hasProcessorFlag) return 'the processor offers neither vmx nor svm';
  return undefined;
}

export async function readKvmSigns(): Promise<KvmSigns> {
  const isThere = (path: string, mode: number) =>
    access(path, mode).then(
      () => true,
      () => false,
    );
  // Containers let it be seen where it cannot be opened.
  const isDeviceUsable = await open('/dev/kvm', 'r+').then(
    async (device) => {
      await device.close();
      return true;
    },
    () => false,
  );
  return {
    isDeviceUsable,
    hasProcessorFlag: hasVirtualisationFlag(await readFile('/proc/cpuinfo', 'utf8').catch(emptyIfMissing)),
    isSoftwareBackend: await isThere('/sys/module/kvm_pvm', constants.F_OK),
  };
}

export function hasVirtualisationFlag(cpuinfo: string): boolean {
  return cpuinfo.split('\n').some((line) => /^flags\s*:.*\b(vmx|svm)\b/.test(line));
}

function emptyIfMissing(error: unknown): string {
  if (isMissing(error)) return '';
  throw error;
}

/** Boots a kernel that says it is alive. Resolves with undefined when it did, else with what happened instead. */
function runProbe(
  kernel: string,
  initrd: string,
  accelerator: Accelerator,
  limitMs = PROBE_LIMIT_MS,
): Promise<string | undefined> {
  const confines = { uid: TOOLS_UID, root: dirname(kernel) };
  const args = probeArguments(kernel, initrd, PROBE_WORD, accelerator, confines);
  const child = spawn('prlimit', [...QEMU_LIMITS, '--', QEMU, ...args], {
    env: programEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return new Promise((resolve) => {
    let output = '';
    let complaint = '';
    const finish = (result: string | undefined) => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      resolve(result);
    };
    const timer = setTimeout(() => finish(`a guest kernel did not boot within ${limitMs} ms`), limitMs);
    // It has neither where it could not be started for want of descriptors, which is told as an error.
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-PROBE_OUTPUT_CHARS);
      if (output.includes(PROBE_MARKER)) finish(undefined);
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(-PROBE_OUTPUT_CHARS);
    });
    child.once('error', (error) => finish(error.message));
    child.once('close', () =>
      finish(complaint.trim().split('\n').pop() || 'QEMU exited before the guest kernel booted'),
    );
  });
}

/**
 * Decides how guests run, once in the life of the process. The cheap signs are read at the start; where they leave it
 * open, a guest kernel is booted with KVM as soon as there is one, and the result is kept.
 */
export class AcceleratorChoice {
  readonly #wanted: 'auto' | Accelerator;
  readonly #log: Logger;
  #decided: AccelDecision | undefined;
  #trial: Promise<AccelDecision> | undefined;
  onDecided: () => void = () => {};

  constructor(wanted: 'auto' | Accelerator, log: Logger) {
    this.#wanted = wanted;
    this.#log = log;
  }

  /** undefined while only a trial can tell, and no kernel was at hand for one. */
  get decided(): AccelDecision | undefined {
    return this.#decided;
  }

  async start(): Promise<void> {
    if (this.#wanted === 'tcg') {
      this.#decide({ accelerator: 'tcg', why: 'set by configuration' });
      return;
    }
    const obstacle = decideBySigns(await readKvmSigns());
    if (obstacle !== undefined) {
      if (this.#wanted === 'kvm') throw new AppError('HOST_NOT_READY', `KVM is required, but ${obstacle}`);
      this.#decide({ accelerator: 'tcg', why: obstacle });
    }
  }

  /** The decision, by trial with this kernel if it is still open. Throws HOST_NOT_READY where KVM is set and does not work. */
  async decide(kernel: string, initrd: string): Promise<AccelDecision> {
    if (this.#decided) return this.#decided;
    this.#trial ??= runProbe(kernel, initrd, 'kvm').then((failure) => {
      if (failure === undefined)
        return this.#decide({ accelerator: 'kvm', why: 'a guest kernel booted with it' });
      if (this.#wanted === 'kvm') {
        // A server may be too busy for once: the next machine tries again.
        this.#trial = undefined;
        throw new AppError('HOST_NOT_READY', `KVM is required, but ${failure}`);
      }
      return this.#decide({ accelerator: 'tcg', why: `KVM is available, but ${failure}` });
    });
    return this.#trial;
  }

  #decide(decision: AccelDecision): AccelDecision {
    this.#decided = decision;
    const { accelerator, why } = decision;
    const how =
      accelerator === 'kvm'
        ? 'hardware virtualisation (KVM)'
        : 'software emulation (TCG), much slower than hardware';
    this.#log.info({ accelerator, why }, `virtual machines use ${how}: ${why}`);
    this.onDecided();
    return decision;
  }
}
