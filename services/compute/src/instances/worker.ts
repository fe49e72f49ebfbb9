import { type Logger, pause } from '@skerry/kit';
import type { Phase, Reason } from '@skerry/protocol';
import { AppError } from '@skerry/protocol';
import { isDiskFull } from '../host/disk-full.ts';
import type { GuestLink } from '../network/ruleset.ts';
import { MACHINE_FILES } from '../vm/machine.ts';
import { Vm } from '../vm/vm.ts';
import { ConsoleLog } from './console-log.ts';
import { drainConsole, followConsole } from './console-reader.ts';
import { type Actual, decideStep, REASONS, type Step } from './diff.ts';
import { type Bench, type Errand, ErrandLine } from './errands.ts';
import { Ledger } from './ledger.ts';
import { guestLinkOf, type Place } from './place.ts';
import { checkMemory, checkRoom, chooseBoot, hasRoom, prepareInstance } from './preparation.ts';
import { type InstanceRecord, instanceDirectory } from './record.ts';
import { putAside, type ReleaseReason } from './released.ts';
import { shutDown } from './shut-down.ts';
import { judgeTrouble, RETRY_MAX_MS, reasonOf, recentOf } from './trouble.ts';
import type { Wanted } from './wanted.ts';
import type { Workshop } from './workshop.ts';

/** After this long without a word from the guest, its address is asked instead. */
export const SILENCE_LIMIT_MS = 300_000;
const SILENCE_RECHECK_MS = 30_000;
/** The same for guests of images that are not of the node's making: they do not know how to say that they are up. */
const STRANGER_SILENCE_LIMIT_MS = 5_000;
const STRANGER_RECHECK_MS = 2_000;
/** How long an errand waits for what is being done with the instance. */
const ERRAND_WAIT_MS = 60_000;
const ROOM_RECHECK_MS = 5_000;
/** A boot that takes longer no longer keeps others from starting. */
const SLOT_LIMIT_MS = 180_000;

/** Looks after one instance: decides and does one step after the other, never two at once. Survives every failure of a step. */
export class Worker {
  readonly #shop: Workshop;
  readonly #place: Place;
  readonly #log: Logger;
  readonly #ledger: Ledger;
  readonly console: ConsoleLog;
  #wanted: Wanted | null;
  #vm: Vm | undefined;
  readonly #errands = new ErrandLine();
  #openPorts: readonly number[] = [];
  #isSilentButThere = false;
  #troubles: number[] = [];
  #wake = Promise.withResolvers<void>();
  #freeSlot: () => void = () => {};
  #releaseReason: ReleaseReason = 'moved';
  #isDone = false;

  constructor(shop: Workshop, place: Place, record: InstanceRecord) {
    this.#shop = shop;
    this.#place = place;
    this.#wanted = record.wanted;
    this.#log = shop.log.child({ instance: place.id });
    this.#ledger = new Ledger(record, { ...shop, log: this.#log });
    this.console = new ConsoleLog(this.#directory, shop.now);
  }

  get record(): InstanceRecord {
    return this.#ledger.record;
  }

  get place(): Place {
    return this.#place;
  }

  /** The instance was released: this worker has nothing to do any more. */
  get isDone(): boolean {
    return this.#isDone;
  }

  get hasProcess(): boolean {
    return this.#vm !== undefined;
  }

  /** A new wish; or why there is none any more. */
  want(wanted: Wanted | 'moved' | 'forgotten'): void {
    if (typeof wanted === 'string') this.#releaseReason = wanted;
    this.#want(typeof wanted === 'string' ? null : wanted);
  }

  #want(wanted: Wanted | null): void {
    if (JSON.stringify(wanted) === JSON.stringify(this.#wanted)) return;
    this.#wanted = wanted;
    this.wake();
  }

  /** Does something with the instance between two steps. Rejects with INSTANCE_BUSY when it cannot begin in time. */
  ask<T>(errand: Errand<T>, waitMs = ERRAND_WAIT_MS): Promise<T> {
    if (this.#isDone) return Promise.reject(GONE);
    const result = this.#errands.ask(errand, waitMs);
    this.wake();
    return result;
  }

  wake(): void {
    this.#wake.resolve();
  }

  /** A core node took a status. */
  async noteAccepted(observedAtMs: number): Promise<void> {
    if (observedAtMs > this.#ledger.record.publishedAtMs)
      await this.#ledger.remember({ publishedAtMs: observedAtMs });
  }

  /** Takes over the QEMU of an earlier process, if it still runs. Called once, before `work`. */
  async adopt(): Promise<void> {
    const vm = await Vm.adopt(this.#directory, this.#place.machineId);
    if (!vm) return;
    this.#take(vm);
    this.#openPorts = this.#ledger.record.wanted.allowedPorts;
    this.#log.info({ pid: vm.pid, state: vm.state }, 'a running virtual machine was taken over');
  }

  /** Runs until the signal ends or the instance is released. The virtual machine goes on without this process. */
  async work(): Promise<void> {
    const { signal, now } = this.#shop;
    const onAbort = () => this.wake();
    signal.addEventListener('abort', onAbort);
    while (!signal.aborted && !this.#isDone) {
      this.#wake = Promise.withResolvers<void>();
      let waitMs: number;
      try {
        await this.#hear();
        if (!this.#errands.isEmpty) {
          await this.#errands.next(this.#bench());
          continue;
        }
        const step = decideStep(this.#wanted, this.#look());
        waitMs = await this.#perform(step);
      } catch (error) {
        if (signal.aborted) break;
        waitMs = await this.#suffer(error, now()).catch((failure) => {
          this.#log.error({ err: failure }, 'the state of an instance could not be kept; trying again');
          return isDiskFull(failure) ? ROOM_RECHECK_MS : RETRY_MAX_MS;
        });
      }
      if (waitMs > 0) await this.#rest(waitMs);
    }
    signal.removeEventListener('abort', onAbort);
    this.#errands.close(GONE);
    this.#freeSlot();
    this.#vm?.[Symbol.dispose]();
  }

  #bench(): Bench {
    const vm = this.#vm?.state === 'gone' ? undefined : this.#vm;
    return {
      place: this.#place,
      record: this.#ledger.record,
      directory: this.#directory,
      vm,
      stop: () => this.#stop(),
      remember: (change) => this.#ledger.remember(change),
    };
  }

  get #directory(): string {
    return instanceDirectory(this.#shop.dataDir, this.#place.id);
  }

  /** Keeps the wish, so that it is known while no core node answers. */
  async #hear(): Promise<void> {
    if (
      this.#wanted !== null &&
      JSON.stringify(this.#wanted) !== JSON.stringify(this.#ledger.record.wanted)
    ) {
      await this.#ledger.note({ wanted: this.#wanted });
    }
  }

  #look(): Actual {
    const state = this.#vm?.state ?? 'none';
    return {
      record: this.#ledger.record,
      vm: state === 'gone' ? 'none' : state,
      allowedPorts: this.#openPorts,
      isSilentButThere: this.#isSilentButThere,
    };
  }

  /** Does a step; returns how long to rest after it unless something happens, 0 to go on at once. */
  async #perform(step: Step): Promise<number> {
    if (this.#vm?.state === 'gone') return this.#mournProcess();
    switch (step.do) {
      case 'renew':
        this.#troubles = [];
        await this.#ledger.remember({
          isPoweredOff: false,
          isOwnerStopped: false,
          failure: null,
          restartId: this.#wanted?.restartId ?? this.#ledger.record.restartId,
        });
        return 0;
      case 'prepare':
        await this.#prepare();
        return 0;
      case 'start':
        await this.#start();
        return 0;
      case 'stop':
        await this.#stop();
        return 0;
      case 'collect':
        await this.#endProcess();
        await this.#ledger.note({ isPoweredOff: true, isStarted: false, bootedAtMs: null });
        this.#log.info('the guest powered itself off');
        return 0;
      case 'firewall':
        await this.#openNetwork();
        return 0;
      case 'release':
        await this.#release();
        return 0;
      case 'rest':
        return this.#settle(step.phase, step.reason);
    }
  }

  async #prepare(): Promise<void> {
    const { wanted } = this.#ledger.record;
    await this.#ledger.say('preparing', null);
    const { ipv4 } = await this.#claimLink();
    const prepared = await prepareInstance(this.#shop, this.#place, wanted, ipv4, (reason) => {
      // Progress that cannot be told is no reason to stop building.
      this.#ledger
        .say('preparing', reason)
        .catch((error) => this.#log.debug({ err: error }, 'progress was not told'));
    });
    await this.#ledger.remember(prepared);
  }

  async #start(): Promise<void> {
    const { starts, now } = this.#shop;
    const { wanted } = this.#ledger.record;
    await checkMemory(wanted.memoryMib);
    await checkRoom(this.#shop.dataDir);
    if (starts.isFull)
      await this.#ledger.say('preparing', {
        code: 'WAITING_FOR_OTHERS',
        message: 'other virtual machines are starting',
      });
    this.#freeSlot();
    this.#freeSlot = await starts.acquire(this.#shop.signal);
    await this.#ledger.say('starting', null);
    const { boot, accelerator: how } = await chooseBoot(this.#shop, this.#ledger.record);
    await this.#openNetwork();
    // First the note, then the process: one that was started and not noted would never be looked for.
    await this.#ledger.remember({ isStarted: true, bootedAtMs: now() });
    const { id, tap, mac, machineId } = this.#place;
    const { disk, seed } = MACHINE_FILES;
    const machine = {
      id,
      machineId,
      cpu: wanted.cpu,
      memoryMib: wanted.memoryMib,
      boot,
      disk,
      seed,
      tap,
      mac,
    };
    const vm = await Vm.start(this.#directory, machine, how);
    this.#take(vm);
    this.#log.info({ pid: vm.pid, accelerator: how }, 'the virtual machine was started');
    const slot = this.#freeSlot;
    setTimeout(slot, SLOT_LIMIT_MS).unref();
  }

  #take(vm: Vm): void {
    this.#vm = vm;
    void followConsole(vm, this.console, this.#shop.signal);
    this.#isSilentButThere = false;
    vm.onChange = () => {
      if (vm.state !== 'booting') this.#freeSlot();
      if (vm.state === 'ready') this.#isSilentButThere = false;
      this.wake();
    };
    if (vm.state !== 'booting') this.#freeSlot();
  }

  /** The instance's link to the network, with its part of the node's IPv4. */
  async #claimLink(): Promise<GuestLink> {
    const { id } = this.#place;
    const { wanted, ipv4: old } = this.#ledger.record;
    const claim = await this.#shop.addresses.claim(id, wanted.allowedPorts);
    if (JSON.stringify(claim) !== JSON.stringify(old)) await this.#ledger.remember({ ipv4: claim });
    return guestLinkOf(this.#place, this.#shop.ipv4Pool, wanted.allowedPorts, claim);
  }

  async #openNetwork(): Promise<void> {
    const link = await this.#claimLink();
    await this.#shop.network.add(link);
    this.#openPorts = link.allowedPorts;
  }

  async #stop(): Promise<void> {
    const vm = this.#vm;
    if (!vm) return;
    await this.#ledger.say('stopping', null);
    await shutDown(vm, this.#shop.signal, this.#log);
    await this.#endProcess();
    await this.#ledger.note({ isStarted: false, bootedAtMs: null });
  }

  async #endProcess(): Promise<void> {
    if (this.#vm) await drainConsole(this.#vm, this.console);
    await this.#vm?.end();
    this.#vm = undefined;
    this.#freeSlot();
  }

  /** QEMU ended although nobody asked for it. */
  async #mournProcess(): Promise<number> {
    this.#vm = undefined;
    this.#freeSlot();
    const error = new AppError('VM_START_FAILED', 'the virtual machine ended unexpectedly');
    return this.#suffer(error, this.#shop.now());
  }

  async #release(): Promise<void> {
    await this.#shop.network.remove(this.#place.tap);
    this.#shop.addresses.free(this.#place.id);
    // A record written later would make the directory again.
    await this.#ledger.close();
    const why = this.#releaseReason;
    const where = await putAside(this.#shop.dataDir, this.#ledger.record, why, this.#shop.now());
    this.#log.warn({ where, why }, 'the instance is not here any more; its disk was put aside');
    this.#isDone = true;
  }

  async #settle(phase: Phase, reason: Reason | null): Promise<number> {
    if (this.#vm?.isStalled) return this.#waitForRoom(this.#vm, phase);
    if (phase === 'starting') return this.#waitForGuest();
    await this.#ledger.say(phase, reason);
    return this.#isSilentButThere ? SILENCE_RECHECK_MS : FOREVER_MS;
  }

  /** QEMU stops a guest whose write finds no room on the host: it goes on by itself when there is some. */
  async #waitForRoom(vm: Vm, phase: Phase): Promise<number> {
    if (await hasRoom(this.#shop.dataDir)) {
      await vm.resume();
      this.#log.warn('the guest goes on: the disk of the machine has room again');
      return 0;
    }
    await this.#ledger.say(phase, REASONS.hostFull);
    return ROOM_RECHECK_MS;
  }

  async #waitForGuest(): Promise<number> {
    await this.#ledger.say('starting', null);
    const silentMs = this.#shop.now() - (this.#ledger.record.bootedAtMs ?? 0);
    const isStranger = this.#ledger.record.kernel === null;
    const limitMs = isStranger ? STRANGER_SILENCE_LIMIT_MS : SILENCE_LIMIT_MS;
    if (silentMs < limitMs) return limitMs - silentMs;
    const { tap, guest, mac } = this.#place;
    this.#isSilentButThere = await this.#shop.network.answers(tap, guest, mac);
    if (this.#isSilentButThere) return 0;
    return isStranger ? STRANGER_RECHECK_MS : SILENCE_RECHECK_MS;
  }

  /** A step failed: say so, and try again after a while or give up. */
  async #suffer(error: unknown, nowMs: number): Promise<number> {
    const verdict = judgeTrouble(error, this.#troubles, nowMs);
    this.#troubles = [...recentOf(this.#troubles, nowMs), nowMs];
    this.#log.warn({ err: error }, 'giveUp' in verdict ? 'the instance failed' : 'the instance has trouble');
    if (!this.#vm) this.#freeSlot();
    if ('giveUp' in verdict) {
      await this.#ledger.remember({ failure: verdict.giveUp });
      return 0;
    }
    const { code, message } = reasonOf(error);
    const seconds = Math.ceil(verdict.retryInMs / 1000);
    await this.#ledger.say(this.#ledger.record.base === null ? 'preparing' : 'starting', {
      code,
      message: `${message} (trying again in ${seconds} s)`.slice(0, 1_024),
    });
    return verdict.retryInMs;
  }

  async #rest(milliseconds: number): Promise<void> {
    const ended = new AbortController();
    await Promise.race([
      this.#wake.promise,
      pause(Math.min(milliseconds, FOREVER_MS), AbortSignal.any([ended.signal, this.#shop.signal])),
    ]);
    ended.abort();
  }
}

const GONE = new AppError('INSTANCE_NOT_FOUND', 'this node does not look after the instance any more');
/** The longest that a timer of Node can wait. */
const FOREVER_MS = 2 ** 31 - 1;
