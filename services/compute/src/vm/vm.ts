import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pause, programEnvironment } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { giveTo, machineUid, QEMU_LIMITS } from '../host/users.ts';
import { CHARDEV, qemuArguments } from './command-line.ts';
import { endLeftCopies } from './disk-jobs.ts';
import { type GuestBounds, NO_BOUNDS } from './guest-bounds.ts';
import { type Accelerator, MACHINE_FILES, type Machine } from './machine.ts';
import { openMachineLog, readLastWords } from './machine-log.ts';
import { findQemu, isQemuOf, searchQemu } from './process.ts';
import { ANSWER_MS, QmpClient, type QmpEventHandler } from './qmp.ts';

export const QEMU = 'qemu-system-x86_64';

/** Between spawn and the first answer; allocating a large guest's memory on a busy machine takes a while. */
const START_DEADLINE_MS = 60_000;
const POLL_MS = 20;
/** After QMP `quit`, before SIGKILL. */
const QUIT_DEADLINE_MS = 10_000;
const KILL_DEADLINE_MS = 10_000;
const RECONNECT_LIMIT = 5;
const CONSOLE_READ_BYTES = 65_536;

/**
 * What a virtual machine is seen to be. `off`: the guest powered itself off, QEMU is still there, paused. `silent`: QEMU is there and
 * does not answer.
 */
export type VmState = 'booting' | 'ready' | 'silent' | 'off' | 'gone';

/**
 * One QEMU process, started by this process or by an earlier one. It outlives this process.
 * `onChange` is called whenever `state` changes.
 */
export class Vm {
  readonly #directory: string;
  readonly #machineId: string;
  readonly #answerMs: number;
  readonly pid: number;
  #qmp: QmpClient | undefined;
  #state: VmState = 'booting';
  #isReleased = false;
  #isStalled = false;
  onChange: () => void = () => {};
  #changed = Promise.withResolvers<void>();

  private constructor(directory: string, machineId: string, pid: number, answerMs = ANSWER_MS) {
    this.#directory = directory;
    this.#machineId = machineId;
    this.#answerMs = answerMs;
    this.pid = pid;
  }

  get state(): VmState {
    return this.#state;
  }

  /** The guest waits: the host's disk was full when it wrote. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** Lets a guest that waited go on. What it wrote is written again. */
  async resume(): Promise<void> {
    await this.command('cont');
    this.#isStalled = false;
  }

  /** Starts QEMU, detached. Throws VM_START_FAILED with QEMU's own words. The tap must be there and free. */
  static async start(
    directory: string,
    machine: Machine,
    accelerator: Accelerator,
    bounds: GuestBounds = NO_BOUNDS,
  ): Promise<Vm> {
    const running = await Vm.adopt(directory, machine.machineId);
    if (running) return running;
    for (const name of [MACHINE_FILES.qmp, MACHINE_FILES.pid])
      await rm(join(directory, name), { force: true });
    const uid = machineUid(machine.id);
    await giveTo(uid, directory, [machine.disk, machine.seed, ...machine.volumes.map(({ file }) => file)]);
    const args = qemuArguments(machine, accelerator, { uid, root: directory }, bounds.share);
    using keeper = bounds.keep(machine, accelerator);
    const child = spawnLogged(directory, [...keeper.command, 'prlimit', ...QEMU_LIMITS, '--', QEMU, ...args]);
    child.unref();
    let ended: string | undefined;
    child.once('error', (error) => {
      ended = error.message;
    });
    child.once('exit', (code, signal) => {
      ended = code === null ? `killed by ${signal}` : `exited with code ${code}`;
    });
    const deadline = performance.now() + START_DEADLINE_MS;
    while (ended === undefined && performance.now() < deadline) {
      const pid = await findQemu(directory, machine.machineId);
      const vm = pid === undefined ? undefined : await Vm.#attach(directory, machine.machineId, pid);
      if (vm) return vm;
      await pause(POLL_MS, NEVER);
    }
    if (ended === undefined) child.kill('SIGKILL');
    throw new AppError(
      'VM_START_FAILED',
      `QEMU ${ended ?? `did not answer within ${START_DEADLINE_MS} ms`}${await readLastWords(directory)}`,
    );
  }

  /**
   * The machine's QEMU from before, if it still runs; `silent` where it did not answer for a while.
   * @param answerMs how long it may take for each answer from then on
   */
  static async adopt(
    directory: string,
    machineId: string,
    patienceMs = START_DEADLINE_MS,
    answerMs = ANSWER_MS,
  ): Promise<Vm | undefined> {
    const pid = await searchQemu(directory, machineId);
    if (pid === undefined) return undefined;
    const deadline = performance.now() + patienceMs;
    const vm = new Vm(directory, machineId, pid, answerMs);
    vm.#state = 'silent';
    await vm.reach();
    while (vm.state === 'silent' && performance.now() <= deadline) {
      await pause(POLL_MS, NEVER);
      await vm.reach();
    }
    return vm.state === 'gone' ? undefined : vm;
  }

  /** Tries once to speak with a QEMU that is silent. */
  async reach(): Promise<void> {
    if (!(await this.#isAlive())) return this.#change('gone');
    await this.#reconnect();
  }

  async #reconnect(): Promise<boolean> {
    const isConnected = await this.#connect();
    // Whoever began copies waits no more. It may take as long as the disk is slow.
    if (isConnected) void endLeftCopies(this);
    return isConnected;
  }

  static async #attach(directory: string, machineId: string, pid: number): Promise<Vm | undefined> {
    const vm = new Vm(directory, machineId, pid);
    return (await vm.#connect()) ? vm : undefined;
  }

  async #connect(): Promise<boolean> {
    try {
      // By way of the process's own directory: short whatever the data directory is, and certainly this process's socket.
      const path = `/proc/${this.pid}/cwd/${MACHINE_FILES.qmp}`;
      const onEvent: QmpEventHandler = (name, data) => this.#onEvent(name, data);
      const qmp = await QmpClient.connect(path, onEvent, this.#answerMs);
      this.#qmp = qmp;
      await this.refresh();
      void qmp.closed.then(() => (this.#qmp === qmp ? this.#onDisconnect() : undefined));
      return true;
    } catch {
      // The next attempt needs the socket: QEMU serves one client at a time.
      this.#qmp?.[Symbol.dispose]();
      return false;
    }
  }

  /** Asks QEMU for the state instead of relying on events. */
  async refresh(): Promise<void> {
    const status = (await this.command('query-status')) as { status: string };
    if (status.status === 'shutdown') return this.#change('off');
    this.#isStalled = status.status === 'io-error';
    const chardevs = (await this.command('query-chardev')) as { label: string; 'frontend-open': boolean }[];
    const isOpen = chardevs.some((one) => one.label === CHARDEV.ready && one['frontend-open']);
    this.#change(isOpen ? 'ready' : 'booting');
  }

  #onEvent(name: string, data: Readonly<Record<string, unknown>>): void {
    if (name === 'VSERPORT_CHANGE' && data.id === CHARDEV.ready)
      this.#change(data.open === true ? 'ready' : 'booting');
    else if (name === 'SHUTDOWN' && data.guest === true) this.#change('off');
    else if (name === 'RESET') this.#change('booting');
    else if (name === 'BLOCK_IO_ERROR' && data.action === 'stop') {
      this.#isStalled = true;
      this.onChange();
    }
  }

  #change(state: VmState): void {
    if (
      this.#state === state ||
      this.#state === 'gone' ||
      (this.#state === 'off' && (state === 'ready' || state === 'silent'))
    )
      return;
    this.#state = state;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
    this.onChange();
  }

  /** It hangs, and may never read what was asked. It serves one connection at a time: the next one is heard when this one is gone. */
  #fallSilent(): void {
    const qmp = this.#qmp;
    this.#qmp = undefined;
    qmp?.[Symbol.dispose]();
    this.#change('silent');
  }

  async #onDisconnect(): Promise<void> {
    if (this.#isReleased) return;
    for (let attempt = 1; attempt <= RECONNECT_LIMIT; attempt++) {
      if (!(await this.#isAlive())) break;
      if (await this.#reconnect()) return;
      await pause(POLL_MS * attempt, NEVER);
    }
    // One that does not answer may hold the disk all the same.
    this.#change((await this.#waitForEnd(KILL_DEADLINE_MS)) ? 'gone' : 'silent');
  }

  async #isAlive(): Promise<boolean> {
    return isQemuOf(this.pid, this.#directory, this.#machineId);
  }

  /** A QMP command (QEMU QMP Reference Manual). Rejects with INTERNAL and QEMU's own words. */
  command(execute: string, args?: Readonly<Record<string, unknown>>): Promise<unknown> {
    return this.#qmp
      ? this.#qmp.command(execute, args)
      : Promise.reject(new AppError('INTERNAL', 'QEMU is not connected'));
  }

  /** Presses the power button. The guest decides what to do; `state` becomes `off` when it is done. */
  async pressPowerButton(): Promise<void> {
    await this.command('system_powerdown');
  }

  /** Ends QEMU, at once, as a power cut would. Resolves when the process is gone. */
  async end(): Promise<void> {
    if (!(await this.#quit())) {
      // Asked again just before: the number may belong to somebody else by now.
      if (await this.#isAlive()) process.kill(this.pid, 'SIGKILL');
      if (!(await this.#waitForEnd(KILL_DEADLINE_MS)))
        throw new AppError('INTERNAL', `QEMU ${this.pid} does not exit`);
    }
    this.#change('gone');
  }

  /** Asks for it. @returns whether it ended; one that does not answer is not waited for */
  async #quit(): Promise<boolean> {
    if (this.#state === 'silent') return false;
    await this.command('quit').catch(() => {});
    return this.#waitForEnd(QUIT_DEADLINE_MS);
  }

  async #waitForEnd(deadlineMs: number): Promise<boolean> {
    const deadline = performance.now() + deadlineMs;
    while (await this.#isAlive()) {
      if (performance.now() > deadline) return false;
      await pause(POLL_MS, NEVER);
    }
    return true;
  }

  /**
   * What the serial console said since the last reading, at most 64 KiB at a time. Empty when QEMU is gone. It is read all the time: one
   * that does not answer is `silent`.
   */
  async readConsole(): Promise<Uint8Array> {
    const text = await this.command('ringbuf-read', {
      device: CHARDEV.console,
      size: CONSOLE_READ_BYTES,
      format: 'base64',
    }).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'TIMED_OUT') this.#fallSilent();
      return '';
    });
    return Buffer.from(typeof text === 'string' ? text : '', 'base64');
  }

  /** Resolves at the next change of `state`. */
  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  /** Lets go of the machine without touching it: another process may adopt it. */
  [Symbol.dispose](): void {
    this.#isReleased = true;
    this.onChange = () => {};
    this.#qmp?.[Symbol.dispose]();
  }
}

/** A process of its own, whose words are in the machine's log. Nothing is left open where it cannot be started. */
function spawnLogged(directory: string, argv: readonly string[]): ChildProcess {
  const [program = '', ...args] = argv;
  const log = openMachineLog(directory);
  try {
    return spawn(program, args, {
      cwd: directory,
      env: programEnvironment(),
      detached: true,
      stdio: ['ignore', log, log],
    });
  } finally {
    closeSync(log);
  }
}

const NEVER = new AbortController().signal;
