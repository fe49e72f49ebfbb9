import { Slots } from '@skerry/kit';
import {
  AppError,
  type InstanceStatusContent,
  type InstanceView,
  isBeyondStart,
  normaliseAddress,
  type Reason,
} from '@skerry/protocol';
import type { Capacity } from '../host/capacity.ts';
import { isDiskFull } from '../host/disk-full.ts';
import { whileNothingIsPromised } from '../host/room.ts';
import { type NetworkNames, tapName } from '../network/names.ts';
import { decideAdmission, promisedTo, SAME_ADDRESS, UNRECORDED } from './admission.ts';
import { noteArrival } from './arrival.ts';
import { readRoom } from './capacity.ts';
import { noteDeparture } from './departure.ts';
import type { InstanceDeps } from './deps.ts';
import { listUnrecorded } from './disks/promised.ts';
import { Expiries } from './expiries.ts';
import { findLeftMachines } from './left-machines.ts';
import { claimLinks } from './links.ts';
import { Looks } from './looks.ts';
import { guestLinkOf, type Place, placeOf } from './place.ts';
import { type LeavingReason, readRecords, type Status } from './record/record.ts';
import { Reservations, TOO_MANY_RESERVATIONS } from './reservations.ts';
import { needOf, wantedOf } from './wanted.ts';
import { reasonOf } from './worker/retry.ts';
import { InstanceWorker } from './worker/worker.ts';

/** How long an instance waits that could not be noted for want of room on the disk. */
const ROOM_RECHECK_MS = 5_000;
/** How long a QEMU of an earlier process may take to answer before it counts as silent: it is asked again later. */
const ADOPT_PATIENCE_MS = 5_000;
/** How many are asked at once: each silent one takes its whole time. */
const ADOPT_AT_ONCE = 32;

export interface InstancesOptions {
  readonly deps: Omit<InstanceDeps, 'onStatus'>;
  readonly nodeId: string;
  readonly ipv6Prefix: string;
  readonly names: NetworkNames;
  /** What this node offers in all. */
  readonly capacity: Capacity;
  /** What snapshots, backups and disks that were left may have beside that. */
  readonly besideBytes: number;
  readonly tell: (status: InstanceStatusContent) => void;
  /** Why this machine cannot run virtual machines, where it cannot: then every instance is refused with it. */
  readonly obstacle: Reason | null;
}

/** All instances of this node: one worker each. */
export class Instances {
  readonly #options: InstancesOptions;
  readonly #deps: InstanceDeps;
  readonly #workers = new Map<string, InstanceWorker>();
  /** Those that are here without a record that can be read: nobody looks after them. */
  readonly #unrecorded = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  /** Why instances were refused, as the network was told. */
  readonly #refused = new Map<string, Reason>();
  readonly #looks = new Looks();
  #turn: Promise<void> = Promise.resolve();
  /** Refused for want of room, or come back while they were released. */
  readonly #waiting = new Map<string, InstanceView>();
  readonly expiries: Expiries;
  readonly #reservations: Reservations;
  #later: NodeJS.Timeout | undefined;
  /** The latest date of any status that was told. */
  #toldMs = 0;

  constructor(options: InstancesOptions) {
    this.#options = options;
    this.#deps = { ...options.deps, onStatus: (id, status) => this.#report(id, status) };
    this.expiries = new Expiries(this.#deps);
    this.#reservations = new Reservations(this.#deps.now);
  }

  list(): InstanceWorker[] {
    return [...this.#workers.values()];
  }

  find(id: string): InstanceWorker | undefined {
    return this.#workers.get(id);
  }

  /** Whatever is here, also without a record that can be read. */
  ids(): string[] {
    return [...this.#workers.keys(), ...this.#unrecorded];
  }

  has(id: string): boolean {
    return this.#workers.has(id) || this.#unrecorded.has(id);
  }

  /** Why nobody looks after an instance that is to be here; undefined where somebody does, or nothing is known of it. */
  absenceOf(id: string): Reason | undefined {
    return this.#refused.get(id) ?? (this.#unrecorded.has(id) ? UNRECORDED : undefined);
  }

  /**
   * Goes on with everything that was here when the last process ended, without asking any core node. What is heard of instances
   * meanwhile waits.
   */
  resume(patienceMs = ADOPT_PATIENCE_MS): Promise<void> {
    return this.#inTurn(() => this.#resume(patienceMs));
  }

  async #resume(patienceMs: number): Promise<void> {
    if (this.#options.obstacle) return;
    const deps = this.#deps;
    const { log } = deps;
    const readable = await readRecords(deps.dataDir, log);
    const known = new Set(readable.map(({ id }) => id));
    for (const id of await listUnrecorded(deps.dataDir, known)) this.#unrecorded.add(id);
    const running = await findLeftMachines(deps.dataDir, known);
    const left = running.map((id) => this.#place(id));
    const records = await claimLinks(deps, readable, left);
    const workers = records.map((record) => new InstanceWorker(deps, this.#place(record.id), record));
    await deps.network.start(
      workers.flatMap(({ place, record: { ipv4, wanted } }) =>
        ipv4 ? [guestLinkOf(place, deps.ipv4Pool, wanted, ipv4)] : [],
      ),
      left.map(({ tap }) => tap),
    );
    const slots = new Slots(ADOPT_AT_ONCE);
    await Promise.all(workers.map((worker) => slots.run(() => this.#takeOver(worker, patienceMs))));
    if (records.length > 0)
      log.info(
        { instances: records.length, running: workers.filter((one) => one.isRunning).length },
        'resumed instances',
      );
  }

  /** Goes on with one instance, and with its machine if that still runs. */
  async #takeOver(worker: InstanceWorker, patienceMs: number): Promise<void> {
    const { record } = worker;
    // Those that have no link yet were not among the guests that the network started with.
    await this.#adopt(worker, patienceMs, record.ipv4 !== undefined);
    this.#workers.set(record.id, worker);
    this.expiries.resume(worker);
    this.#toldMs = Math.max(this.#toldMs, record.status?.observedAtMs ?? 0);
    if (record.status && record.status.observedAtMs > record.publishedAtMs)
      this.#report(record.id, record.status);
    this.#run(worker);
  }

  async #adopt(worker: InstanceWorker, patienceMs: number, hasRules: boolean): Promise<void> {
    await worker.adopt(patienceMs, hasRules).catch((error: unknown) => {
      const { id: instance } = worker.record;
      this.#deps.log.error({ err: error, instance }, 'a running virtual machine could not be taken over');
    });
  }

  /** What a core node says of an instance. */
  apply(view: InstanceView): Promise<void> {
    this.#looks.overtake(view.instance_id);
    return this.#inTurn(() => this.#apply(view));
  }

  /**
   * Asks a core node for an instance and goes by what it says, unless more of it was heard meanwhile: anybody may have the
   * node ask, and an older word must not take the place of a newer one. Throws what `ask` and `checkLag` do.
   */
  look(id: string, ask: () => Promise<InstanceView>): Promise<InstanceView> {
    const askInStep = async () => {
      await this.#deps.checkLag();
      return ask();
    };
    return this.#looks.look(id, askInStep, (view, isOvertaken) =>
      this.#inTurn(async () => {
        if (!isOvertaken()) await this.#apply(view);
      }),
    );
  }

  /** One after the other: the same instance told twice at once is one machine. */
  #inTurn(body: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(body);
    this.#turn = done.catch(() => {});
    return done;
  }

  async #apply(view: InstanceView): Promise<void> {
    const { nodeId, names } = this.#options;
    const worker = this.#workers.get(view.instance_id);
    if (view.node_id !== nodeId) {
      this.#waiting.delete(view.instance_id);
      this.#refused.delete(view.instance_id);
      // No node at all is a scheduler's second thought: only another node ends this one's care.
      if (view.node_id !== null) await this.#dismiss(view.instance_id, 'moved', view);
      return;
    }
    if (this.#options.obstacle) return this.#refuse(view.instance_id, this.#options.obstacle);
    if (worker) {
      // When it is released, it is admitted again.
      if (worker.isReleasing) this.#waiting.set(view.instance_id, view);
      else this.#waiting.delete(view.instance_id);
      worker.want(wantedOf(view));
      return;
    }
    const place = this.#place(view.instance_id);
    if (this.ids().some((id) => id !== place.id && tapName(names, id) === place.tap))
      return this.#refuse(view.instance_id, SAME_ADDRESS);
    await whileNothingIsPromised(() => this.#admitIfRoom(view, place));
  }

  async #admitIfRoom(view: InstanceView, place: Place): Promise<void> {
    const refusal = await this.#findRefusal(view);
    if (refusal) {
      // It is taken as soon as there is room.
      this.#waiting.set(view.instance_id, view);
      return this.#refuse(view.instance_id, refusal);
    }
    try {
      await this.#admit(view, place);
    } catch (error) {
      const reason = reasonOf(error);
      // It is tried again and again, and said once.
      if (!isDiskFull(error) && this.#refused.get(view.instance_id)?.message !== reason.message)
        this.#deps.log.error({ err: error, instance: view.instance_id }, 'an instance could not be recorded');
      // Nothing is begun that cannot be noted; those who come after it are heard all the same.
      this.#waiting.set(view.instance_id, view);
      this.#refuse(view.instance_id, reason);
      this.#tryLater();
    }
  }

  /** Keeps room for an instance that somebody is about to publish. Gives until when, or why there is none. */
  async reserve(address: string, need: Capacity): Promise<number | Reason> {
    const { capacity, obstacle } = this.#options;
    if (obstacle) return obstacle;
    const decide = (offer: Capacity, unrecorded: readonly Capacity[] = []) =>
      decideAdmission(
        offer,
        [...this.#promised(), ...unrecorded, ...this.#reservations.beside(address)],
        need,
      );
    const refusal = decide(capacity) ?? decide(...(await this.#readRoom()));
    return refusal ?? this.#reservations.take(address, need) ?? TOO_MANY_RESERVATIONS;
  }

  async #findRefusal(view: InstanceView): Promise<Reason | null> {
    // One that leaves while disks are looked at counts.
    const promised = this.#promised();
    const decide = (offer: Capacity, unrecorded: readonly Capacity[] = []) =>
      decideAdmission(offer, [...promised, ...unrecorded], needOf(wantedOf(view)));
    // Where it is full anyway, no disk is looked at.
    return decide(this.#options.capacity) ?? decide(...(await this.#readRoom(view.instance_id)));
  }

  /** @param except as of `readRoom` */
  #readRoom(except?: string): Promise<[offer: Capacity, unrecorded: Capacity[]]> {
    const records = this.list().map(({ record }) => record);
    return readRoom({ ...this.#options, dataDir: this.#deps.dataDir }, records, except);
  }

  /** What the node offers now, without what copies and disks that were left have of it. Those go without a word: who waits for room is tried again. */
  async lookAtOffer(): Promise<Capacity> {
    const [offer] = await this.#readRoom();
    if (this.#waiting.size > 0) this.#tryWaiting();
    return offer;
  }

  #promised(): Capacity[] {
    return this.list().map(({ record }) => promisedTo(record));
  }

  async #admit(view: InstanceView, place: Place): Promise<void> {
    const deps = this.#deps;
    const { record, isLeft } = await noteArrival(deps, place, wantedOf(view), this.#nextMs());
    this.#waiting.delete(view.instance_id);
    this.#refused.delete(view.instance_id);
    this.#reservations.drop(normaliseAddress(view.owner));
    this.#unrecorded.delete(view.instance_id);
    this.#hold(new InstanceWorker(deps, place, record), isLeft);
  }

  /** @param isLeft its machine may run */
  #hold(worker: InstanceWorker, isLeft: boolean): void {
    this.#workers.set(worker.place.id, worker);
    // Nobody waits meanwhile; one that is silent is asked again by its worker.
    this.#run(worker, isLeft ? this.#adopt(worker, 0, false) : undefined);
  }

  /** The owner forgot the instance: its machine ends, and its disk is released as when another node takes it over. */
  forget(instanceId: string): Promise<void> {
    this.#looks.overtake(instanceId);
    return this.#inTurn(async () => {
      this.#waiting.delete(instanceId);
      this.#refused.delete(instanceId);
      await this.#dismiss(instanceId, 'forgotten');
    });
  }

  async #dismiss(id: string, why: LeavingReason, view?: InstanceView): Promise<void> {
    const worker = this.#workers.get(id);
    if (worker) return worker.want(why);
    if (!this.#unrecorded.has(id)) return;
    const place = this.#place(id);
    try {
      const record = await noteDeparture(this.#deps, place, why, view, this.#nextMs());
      this.#unrecorded.delete(id);
      if (record) this.#hold(new InstanceWorker(this.#deps, place, record), true);
    } catch (error) {
      // It is heard of again, and stays as it is until then.
      this.#deps.log.error({ err: error, instance: id }, 'an instance that is to leave cannot be set aside');
    }
  }

  /** The full list of this node's instances. Says again what a core node has not heard, or has wrong. */
  async applyAll(views: readonly InstanceView[]): Promise<void> {
    for (const view of views) {
      await this.apply(view);
      const worker = this.#workers.get(view.instance_id);
      const phase = worker?.record.status?.phase;
      if (phase !== undefined && phase !== view.phase) await worker?.tellAgain();
    }
  }

  #report(id: string, status: Status): void {
    const { phase, reason, observedAtMs, restartId } = status;
    this.#toldMs = Math.max(this.#toldMs, observedAtMs);
    this.#options.tell({
      instance_id: id,
      phase,
      reason,
      observed_at_ms: observedAtMs,
      restart_id: restartId,
    });
    // It takes no room any more.
    if (isBeyondStart(phase, reason)) this.#tryLater();
  }

  /** Resolves when no worker works any more; the signal must have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  #place(id: string): Place {
    return placeOf(this.#options.names, this.#options.ipv6Prefix, id);
  }

  #run(worker: InstanceWorker, adopted: Promise<void> = Promise.resolve()): void {
    const { log } = this.#deps;
    const running: Promise<void> = adopted
      .then(() => worker.work())
      .catch((error) =>
        log.error({ err: error, instance: worker.place.id }, 'the worker of an instance stopped'),
      )
      .finally(() => {
        this.#running.delete(running);
        if (worker.isDone) this.#workers.delete(worker.place.id);
        if (worker.isDone) this.#tryWaiting();
      });
    this.#running.add(running);
  }

  #tryLater(): void {
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.#tryWaiting();
    }, ROOM_RECHECK_MS).unref();
  }

  /** There may be room: those who were refused before are tried again, in the order in which they came. */
  #tryWaiting(): void {
    if (this.#deps.signal.aborted) return;
    const waiting = [...this.#waiting.keys()];
    void (async () => {
      for (const id of waiting) await this.#tryAgain(id);
    })().catch((error) => this.#deps.log.error({ err: error }, 'a waiting instance could not be accepted'));
  }

  /** By what a core node says of it now: it may have moved or been forgotten while nothing was heard. */
  async #tryAgain(id: string): Promise<void> {
    const view = this.#waiting.get(id);
    if (!view || (await this.#findRefusal(view))) return;
    try {
      await this.look(id, () => this.#deps.core.getInstance(id));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      // Where the core node does not answer, the next list of this node's instances has it.
      if (error.code === 'INSTANCE_NOT_FOUND' && this.#waiting.get(id) === view) this.#waiting.delete(id);
    }
  }

  #refuse(id: string, reason: Reason): void {
    if (this.#refused.get(id)?.message === reason.message) return;
    this.#refused.set(id, reason);
    this.#report(id, { phase: 'failed', reason, observedAtMs: this.#nextMs(), restartId: null });
  }

  /** After all that was told, though the clock was set back since: a core node goes by the latest date of an instance. */
  #nextMs(): number {
    return Math.max(this.#deps.now(), this.#toldMs + 1);
  }
}
