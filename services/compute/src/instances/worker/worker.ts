import { Failures, type Logger } from '@skerry/kit';
import { AppError, type Reason } from '@skerry/protocol';
import { isDiskFull } from '../../host/disk-full.ts';
import type { OpenPorts } from '../../network/host-ports.ts';
import type { GuestLink } from '../../network/ruleset.ts';
import { MACHINE_FILES } from '../../vm/machine.ts';
import { readLastWords } from '../../vm/machine-log.ts';
import { Vm } from '../../vm/vm.ts';
import { ConsoleLog } from '../console/console-log.ts';
import type { InstanceDeps } from '../deps.ts';
import { findRestored, removeDiscarded } from '../disks/replace.ts';
import { dropFetched } from '../disks/volumes.ts';
import { guestLinkOf, type Place } from '../place.ts';
import { type InstanceRecord, instanceDirectory, type LeavingReason, phaseText } from '../record/record.ts';
import { StoredRecord } from '../record/stored-record.ts';
import type { Wanted } from '../wanted.ts';
import { decideStep, isUrgent, REASONS, type Step } from './diff.ts';
import { MachineProcess } from './machine-process.ts';
import { Observer, ROOM_RECHECK_MS } from './observer.ts';
import { type IdleInstance, type OwnerTask, OwnerTaskQueue } from './owner-tasks.ts';
import { checkMemory, checkRoom, chooseBoot, prepareInstance } from './preparation.ts';
import { release } from './release.ts';
import { decideRetry, isOwnersFault, RETRY_MAX_MS, reasonOf, recentOf } from './retry.ts';
import { shutDown } from './shut-down.ts';
import { Hangs } from './silence.ts';
import { sleep } from './sleep.ts';
import { Turn } from './turn.ts';

/** How long a task waits for what is being done with the instance. */
const TASK_WAIT_MS = 60_000;
const REACH_EVERY_MS = 15_000;
/** Why a step ends that only waits for others. No failure. */
const CHANGED = new Error('something else is asked of the instance');

/** Looks after one instance: decides and does one step after the other, never two at once. Survives every failure of a step. */
export class InstanceWorker {
  readonly #deps: InstanceDeps;
  readonly #place: Place;
  readonly #log: Logger;
  readonly #stored: StoredRecord;
  readonly console: ConsoleLog;
  #wanted: Wanted | null;
  readonly #machine: MachineProcess;
  readonly #tasks = new OwnerTaskQueue();
  #open: OpenPorts | null = null;
  #failureTimes: number[] = [];
  readonly #problems: Failures;
  readonly #hangs = new Hangs();
  readonly #observer: Observer;
  #wake = Promise.withResolvers<void>();
  /** Ends the waiting of the step that is being done: for a turn to boot, for an image. */
  #change = new AbortController();
  readonly #turn: Turn;
  #releaseReason: LeavingReason;
  #isReleasing = false;
  #isDone = false;

  constructor(deps: InstanceDeps, place: Place, record: InstanceRecord) {
    this.#deps = deps;
    this.#place = place;
    this.#wanted = record.leaving ? null : record.wanted;
    this.#releaseReason = record.leaving ?? 'moved';
    this.#log = deps.log.child({ instance: place.id });
    this.#problems = new Failures({ log: this.#log, what: 'the instance has a problem' });
    this.#turn = new Turn(deps.starts);
    const directory = instanceDirectory(deps.dataDir, place.id);
    const console = new ConsoleLog(directory, deps.now);
    const onStatus: InstanceDeps['onStatus'] = (id, status) => {
      deps.onStatus(id, status);
      console.note(phaseText(status));
    };
    this.console = console;
    this.#stored = new StoredRecord(record, { ...deps, log: this.#log, onStatus });
    this.#machine = new MachineProcess({
      ...{ directory: this.#directory, machineId: place.machineId, console: this.console },
      ...{ turn: this.#turn, signal: deps.signal, onChange: () => this.wake() },
    });
    this.#observer = new Observer({
      deps,
      place,
      stored: this.#stored,
      machine: this.#machine,
      log: this.#log,
    });
  }

  get record(): InstanceRecord {
    return this.#stored.record;
  }

  get place(): Place {
    return this.#place;
  }

  /** The instance was released: this worker has nothing to do any more. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** It is being released, or was: a wish that comes now may be too late for this worker. */
  get isReleasing(): boolean {
    return this.#isReleasing;
  }

  get isRunning(): boolean {
    return this.#machine.state !== 'none' && this.#machine.state !== 'off';
  }

  /** Its QEMU; undefined where none is known. */
  get pid(): number | undefined {
    return this.#machine.vm?.pid;
  }

  /** A new wish; or why there is none any more. */
  want(asked: Wanted | LeavingReason): void {
    const wanted = typeof asked === 'string' ? null : asked;
    if (typeof asked === 'string') this.#releaseReason = asked;
    if (JSON.stringify(wanted) === JSON.stringify(this.#wanted)) return;
    this.#wanted = wanted;
    this.#ask();
  }

  /** Does something with the instance between two steps. Rejects with INSTANCE_BUSY when it cannot begin in time. */
  runTask<T>(task: OwnerTask<T>, waitMs = TASK_WAIT_MS): Promise<T> {
    if (this.#isDone) return Promise.reject(RELEASED);
    const result = this.#tasks.run(task, waitMs);
    this.#ask();
    return result;
  }

  /** Something is asked: nobody's images and machines keep it waiting. */
  #ask(): void {
    this.#change.abort(CHANGED);
    this.wake();
  }

  wake(): void {
    this.#wake.resolve();
  }

  /** A core node took a status. */
  async noteAccepted(observedAtMs: number): Promise<void> {
    if (observedAtMs > this.#stored.record.publishedAtMs)
      await this.#stored.update({ publishedAtMs: observedAtMs });
  }

  /** Says again what a core node has not heard, or has wrong. */
  tellAgain(): Promise<void> {
    return this.#stored.tellAgain();
  }

  /** Takes over the QEMU of an earlier process, if it still runs. Called once, before `work`. @param hasRules of the recorded wish */
  async adopt(patienceMs: number, hasRules: boolean): Promise<void> {
    const vm = await this.#machine.find(patienceMs);
    if (!vm) return;
    if (hasRules) this.#open = this.#stored.record.wanted;
    this.#log.info({ pid: vm.pid, state: vm.state }, 'found a virtual machine');
  }

  /** Runs until the signal ends or the instance is released. The virtual machine goes on without this process. */
  async work(): Promise<void> {
    const { signal, now } = this.#deps;
    const onAbort = () => this.wake();
    signal.addEventListener('abort', onAbort);
    while (!signal.aborted && !this.#isDone) {
      this.#wake = Promise.withResolvers<void>();
      let waitMs: number;
      try {
        await this.#saveWanted();
        await this.#settleRestore();
        this.#change = new AbortController();
        if (this.#machine.state !== 'silent') this.#tellOfHang();
        const step = this.#nextStep();
        if (!this.#tasks.isEmpty && !isUrgent(step)) {
          await this.#tasks.next(this.#instance());
          continue;
        }
        waitMs = await this.#perform(step);
      } catch (error) {
        if (signal.aborted) break;
        if (error === CHANGED) continue;
        waitMs = await this.#handleFailure(error, now()).catch((failure) => {
          this.#log.error({ err: failure }, 'the state of an instance could not be stored; retrying');
          return isDiskFull(failure) ? ROOM_RECHECK_MS : RETRY_MAX_MS;
        });
      }
      if (waitMs > 0) await sleep(waitMs, this.#wake.promise, signal);
    }
    signal.removeEventListener('abort', onAbort);
    this.#tasks.close(RELEASED);
    if (this.#isDone) this.console.end();
    this.#turn.end();
    this.#machine[Symbol.dispose]();
  }

  #instance(): IdleInstance {
    return {
      place: this.#place,
      record: this.#stored.record,
      directory: this.#directory,
      vm: this.#machine.vm,
      stop: () => this.#stop(),
      update: (change) => this.#stored.update(change),
    };
  }

  get #directory(): string {
    return instanceDirectory(this.#deps.dataDir, this.#place.id);
  }

  /** Keeps the wish, or why there is none any more, so that it is known while no core node answers. */
  async #saveWanted(): Promise<void> {
    const { wanted, leaving } = this.#stored.record;
    const wish = this.#wanted ? { wanted: this.#wanted } : { wanted, leaving: this.#releaseReason };
    if (JSON.stringify(wish) !== JSON.stringify({ wanted, leaving }))
      await this.#stored.tryUpdate({ leaving: undefined, ...wish });
  }

  /** Notes what became of a restore that was cut off. */
  async #settleRestore(): Promise<void> {
    const { restoring } = this.#stored.record;
    if (restoring) await this.#stored.update(await findRestored(this.#directory, restoring));
  }

  #nextStep(): Step {
    return decideStep(this.#wanted, {
      record: this.#stored.record,
      vm: this.#machine.state,
      open: this.#open,
      isSilentButThere: this.#machine.isSilentButThere,
    });
  }

  /** Does a step; returns how long to rest after it unless something happens, 0 to go on at once. */
  async #perform(step: Step): Promise<number> {
    if (this.#machine.hasExited) return this.#handleExit();
    switch (step.do) {
      case 'renew':
        this.#failureTimes = [];
        await this.#stored.update({
          isPoweredOff: false,
          isOwnerStopped: false,
          failure: null,
          restartId: this.#wanted?.restartId ?? this.#stored.record.restartId,
        });
        return 0;
      case 'prepare':
        await this.#prepare();
        return 0;
      case 'start':
        await this.#start();
        return 0;
      case 'reach':
        return this.#reach();
      case 'stop':
        await this.#stop();
        return 0;
      case 'collect':
        await this.#machine.end();
        await this.#stored.tryUpdate({ isPoweredOff: true, isStarted: false, bootedAtMs: null });
        this.#log.info('the guest powered itself off');
        return 0;
      case 'firewall':
        await this.#openNetwork();
        return 0;
      case 'release':
        await this.#release();
        return 0;
      case 'rest':
        if (step.phase !== 'failed') this.#problems.clear();
        return this.#observer.report(step.phase, step.reason);
    }
  }

  async #prepare(): Promise<void> {
    const { wanted, discarded } = this.#stored.record;
    using preparing = await this.#stored.beginPreparing();
    await removeDiscarded(this.#directory, discarded);
    const claim = async () => (await this.#claimLink()).ipv4;
    const { signal: changed } = this.#change;
    const tell = (reason: Reason) => {
      if (!changed.aborted) preparing.tell(reason);
    };
    const prepared = await prepareInstance(this.#deps, this.#place, wanted, claim, { tell, changed });
    await this.#stored.update({ ...prepared, discarded: undefined });
  }

  async #start(): Promise<void> {
    const { now, signal } = this.#deps;
    const ended = AbortSignal.any([signal, this.#change.signal]);
    const { wanted, volumes = [] } = this.#stored.record;
    await checkMemory(wanted.memoryMib);
    await checkRoom(this.#deps.dataDir);
    const owner = { key: wanted.owner ?? this.#place.id, isExempt: false };
    await this.#turn.take(owner, () => this.#stored.setPhase('preparing', REASONS.waiting), ended);
    await this.#stored.setPhase('starting', null);
    const { boot, accelerator: how } = await chooseBoot(this.#deps, this.#stored.record);
    await this.#openNetwork();
    // First the note, then the process: one that was started and not noted would never be looked for.
    await this.#stored.update({ isStarted: true, bootedAtMs: now() });
    const { id, tap, mac, machineId } = this.#place;
    const { disk, seed } = MACHINE_FILES;
    const { cpu, memoryMib } = wanted;
    const machine = { id, machineId, cpu, memoryMib, boot, disk, seed, volumes, tap, mac };
    const vm = await Vm.start(this.#directory, machine, how, this.#deps.bounds);
    this.#machine.take(vm);
    this.#log.info({ pid: vm.pid, accelerator: how }, 'started the virtual machine');
    this.#turn.limit();
  }

  /** Nothing else is done with an instance whose QEMU is there and does not speak, but to end it where that is asked for. */
  async #reach(): Promise<number> {
    await this.#machine.vm?.reach();
    if (this.#machine.state !== 'silent') return 0;
    this.#tellOfHang();
    const phase = this.#stored.record.status?.phase === 'running' ? 'running' : 'starting';
    if (this.#hangs.isTold) await this.#stored.setPhase(phase, REASONS.qemuSilent);
    return REACH_EVERY_MS;
  }

  /** For whoever runs the node, as `reach` does for the owner. */
  #tellOfHang(): void {
    const news = this.#hangs.note(this.#machine.state, this.#deps.now());
    if (news?.is === 'hanging') this.#log.warn({ pid: this.#machine.vm?.pid }, REASONS.qemuSilent.message);
    if (news?.is === 'answering')
      this.#log.info({ seconds: Math.round(news.afterMs / 1_000) }, "this machine's QEMU answers again");
  }

  /** The instance's link to the network, with its part of the node's IPv4. */
  async #claimLink(): Promise<GuestLink> {
    const { id } = this.#place;
    const { wanted, ipv4: old } = this.#stored.record;
    const claim = await this.#deps.addresses.claim(id, wanted);
    if (JSON.stringify(claim) !== JSON.stringify(old)) await this.#stored.update({ ipv4: claim });
    return guestLinkOf(this.#place, this.#deps.ipv4Pool, wanted, claim);
  }

  async #openNetwork(): Promise<void> {
    const link = await this.#claimLink();
    await this.#deps.network.add(link);
    this.#open = link;
  }

  async #stop(): Promise<void> {
    // Also one that this worker knows nothing of: the disk is not free before it has ended.
    const vm = await this.#machine.find();
    if (!vm) return;
    await this.#stored.setPhase('stopping', null);
    await shutDown(vm, this.#deps.signal, this.#log);
    await this.#machine.end();
    await this.#stored.tryUpdate({ isStarted: false, bootedAtMs: null });
  }

  /** QEMU ended although nobody asked for it. */
  async #handleExit(): Promise<number> {
    this.#machine.forget();
    const why = `the virtual machine exited unexpectedly${await readLastWords(this.#directory)}`;
    return this.#handleFailure(new AppError('VM_START_FAILED', why), this.#deps.now());
  }

  async #release(): Promise<void> {
    this.#isReleasing = true;
    try {
      // It is ended first: its directory, which it is known by, would be another one.
      if (await this.#machine.find()) return;
      await release(this.#deps, this.#place, this.#stored, this.#releaseReason, this.#log);
      this.#isDone = true;
    } finally {
      this.#isReleasing = this.#isDone;
    }
  }

  /** A step failed: say so, and try again after a while or give up. */
  async #handleFailure(error: unknown, nowMs: number): Promise<number> {
    const decision = decideRetry(error, this.#failureTimes, nowMs);
    this.#failureTimes = [...recentOf(this.#failureTimes, nowMs), nowMs];
    if (!this.#machine.vm) this.#turn.end();
    if ('giveUp' in decision) {
      // What its owner asked for is no news to whoever runs the node.
      this.#log[isOwnersFault(error) ? 'info' : 'warn']({ err: error }, 'the instance failed');
      await this.#stored.update({ failure: decision.giveUp });
      const { base, volumes } = this.#stored.record;
      if (base === null && !this.#machine.vm) await dropFetched(this.#directory, volumes);
      // What has to end is tried for as long as it takes.
      return this.#nextStep().do === 'rest' ? 0 : RETRY_MAX_MS;
    }
    this.#problems.note(error);
    await this.#stored.tellRetry(reasonOf(error), decision.retryInMs);
    return decision.retryInMs;
  }
}

const RELEASED = new AppError('INSTANCE_NOT_FOUND', 'this node no longer has the instance');
