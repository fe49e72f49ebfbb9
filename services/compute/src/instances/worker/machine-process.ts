import { Vm, type VmState } from '../../vm/vm.ts';
import type { ConsoleLog } from '../console/console-log.ts';
import { drainConsole, followConsole } from '../console/console-reader.ts';
import type { Turn } from './turn.ts';

export interface MachineProcessOptions {
  /** The instance's. */
  readonly directory: string;
  readonly machineId: string;
  readonly console: ConsoleLog;
  /** Ends when the guest is up, or is no more. */
  readonly turn: Turn;
  readonly signal: AbortSignal;
  readonly onChange: () => void;
}

/** The QEMU of one instance, as far as its worker holds one. */
export class MachineProcess {
  readonly #options: MachineProcessOptions;
  #vm: Vm | undefined;
  /** The guest never said that it is up, but its address answers. */
  isSilentButThere = false;

  constructor(options: MachineProcessOptions) {
    this.#options = options;
  }

  /** Undefined where there is none. */
  get vm(): Vm | undefined {
    return this.hasExited ? undefined : this.#vm;
  }

  get state(): Exclude<VmState, 'gone'> | 'none' {
    const state = this.#vm?.state ?? 'none';
    return state === 'gone' ? 'none' : state;
  }

  /** It ended although nobody asked for it. */
  get hasExited(): boolean {
    return this.#vm?.state === 'gone';
  }

  /** The one that is held, or else one that runs all the same: of an earlier process, or of a start that seemed to fail. */
  async find(patienceMs = 0): Promise<Vm | undefined> {
    const { directory, machineId } = this.#options;
    const found = this.vm ? undefined : await Vm.adopt(directory, machineId, patienceMs);
    if (found) this.take(found);
    return this.vm;
  }

  take(vm: Vm): void {
    const { console, turn, signal, onChange } = this.#options;
    this.#vm = vm;
    void followConsole(vm, console, signal);
    this.isSilentButThere = false;
    vm.onChange = () => {
      if (vm.state !== 'booting') turn.end();
      if (vm.state === 'ready') this.isSilentButThere = false;
      onChange();
    };
    if (vm.state !== 'booting') turn.end();
  }

  /** Ends it, where there is one, after reading what its guest said last. */
  async end(): Promise<void> {
    if (this.#vm) await drainConsole(this.#vm, this.#options.console);
    await this.#vm?.end();
    this.forget();
  }

  /** It has exited. */
  forget(): void {
    this.#vm = undefined;
    this.#options.turn.end();
  }

  /** Lets go of it without touching it. */
  [Symbol.dispose](): void {
    this.#vm?.[Symbol.dispose]();
  }
}
