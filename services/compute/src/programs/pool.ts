import { AppError, type RuntimeName } from '@skerry/protocol';
import { chooseToEnd, chooseToRefuse, type Held, orderWaiters, RecentUse } from './fair-shares.ts';
import { PROGRAM_LIMITS } from './limits.ts';
import { heldBy, type Order, type Place, type PoolOptions, type Start, type Waiter } from './places.ts';
import { Sandbox, type SandboxResult } from './sandbox/sandbox.ts';
import { chooseToGiveWay, gaveWay, keptIn } from './standing/kept-shares.ts';

const SANDBOXES_MAX = 256;
const SPARE_DELAY_MS = 200;
const LOOK_MS = 5_000;
/** While calls wait: how often it is looked whether others hold more than their share. */
const SHARE_LOOK_MS = 500;

/** Keeps programs warm within the memory that there is. Who has not been called for longest makes room. */
export class Pool implements AsyncDisposable {
  readonly #options: PoolOptions;
  readonly #places = new Set<Place>();
  readonly #freeSlots = Array.from({ length: SANDBOXES_MAX }, (_, index) => SANDBOXES_MAX - 1 - index);
  readonly #waiters: Waiter[] = [];
  readonly #recent = new RecentUse();
  readonly #looking: NodeJS.Timeout;
  #refilling: NodeJS.Timeout | undefined;
  #sharing: NodeJS.Timeout | undefined;
  #isClosed = false;
  #made = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#looking = setInterval(() => this.#endIdle(), Math.min(LOOK_MS, options.idleMs)).unref();
    this.#refillSoon(0);
  }

  /**
   * Runs `work` in a sandbox that holds the program and nobody else's call.
   *
   * @throws AppError NO_RUNNER where the program can never fit, OVERLOADED where too many wait or one waited too long
   */
  async use<T>(order: Order, work: (sandbox: Sandbox, start: Start) => Promise<T>): Promise<T> {
    const place = this.#take(order) ?? (await this.#wait(order));
    let start: Start = 'warm';
    try {
      if (place.key === null || place.sandbox === undefined) start = await this.#fill(place, order);
      return await work(place.sandbox!, start);
    } finally {
      this.#release(place);
    }
  }

  /**
   * Keeps a program running in a sandbox of its own, where its calls go from then on. Resolves with what it answered at the end,
   * if it did, and rejects with why it could not go on; nothing of it is left then.
   *
   * @throws AppError NO_RUNNER where what is kept leaves no room for it, OVERLOADED, PROGRAM_CRASHED
   */
  async keep(order: Order, signal: AbortSignal): Promise<SandboxResult | undefined> {
    this.#makeKeptRoom(order);
    void this.drop(order.key);
    const place = this.#take(order) ?? (await this.#wait(order));
    const stop = () => void this.#end(place);
    signal.addEventListener('abort', stop, { once: true });
    try {
      signal.throwIfAborted();
      // Those who waited beside it did not know of each other.
      this.#makeKeptRoom(order, place);
      await this.#fill(place, order);
      const result = await place.sandbox!.begin();
      if (result.kind === 'failed' || !place.sandbox!.isUsable) return result;
      this.#release(place);
      await place.sandbox!.ended;
      if (place.givesWay) throw gaveWay();
      return undefined;
    } finally {
      signal.removeEventListener('abort', stop);
      await this.#end(place);
    }
  }

  /** Lets go of a program's warm sandboxes: it was forgotten, or its code is another. Resolves when they are gone. */
  async drop(key: string): Promise<void> {
    const own = [...this.#places].filter(
      (place) => place.key === key && (place.state === 'idle' || place.isKept),
    );
    await Promise.all(own.map((place) => this.#end(place)));
  }

  /** Warm and busy sandboxes of programs, blank ones left out; of one program where its key is given. */
  list(key?: string): readonly Place[] {
    return [...this.#places].filter((place) => (key === undefined ? place.key !== null : place.key === key));
  }

  isKept(key: string): boolean {
    return this.#keptOf(key) !== undefined;
  }

  get spares(): number {
    return [...this.#places].filter(({ key, state }) => key === null && state === 'idle').length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#looking);
    for (const timer of [this.#refilling, this.#sharing]) clearTimeout(timer);
    for (const waiter of this.#waiters.splice(0))
      waiter.refuse(new AppError('SHUTTING_DOWN', 'the node is shutting down'));
    await Promise.all([...this.#places].map((place) => this.#end(place)));
  }

  #needOf({ runtime, code }: Order): number {
    return this.#options.kits.get(runtime)!.allowanceMib + code.memoryMib;
  }

  get #contendedMs(): number {
    return this.#options.contendedMs ?? PROGRAM_LIMITS.contendedMs;
  }

  get #reservedMib(): number {
    let sum = 0;
    for (const { reservedMib } of this.#places) sum += reservedMib;
    return sum;
  }

  /** What ends so that an order is kept: others must have room beside it, and owners a share. Throws NO_RUNNER. @param own the order's place, where it has one */
  findGivingWay(order: Order, own?: Place): Place[] {
    const isOther = (place: Place) => place.isKept && place !== own && place.state !== 'ending';
    const kept = [...this.#places].filter(isOther);
    const limitMib = Math.floor(this.#options.memoryMib * PROGRAM_LIMITS.keptShare);
    const asked = { owner: order.owner, memoryMib: this.#needOf(order) };
    return chooseToGiveWay(kept.map(keptIn), asked, limitMib).map(({ place }) => place);
  }

  #makeKeptRoom(order: Order, own?: Place): void {
    for (const place of this.findGivingWay(order, own)) {
      place.givesWay = true;
      // A call that is in it was begun.
      place.sandbox?.end(gaveWay());
      void this.#end(place);
    }
  }

  /** A place for the order, or undefined if it has to wait. */
  #take(order: Order): Place | undefined {
    const need = this.#needOf(order);
    const { memoryMib } = this.#options;
    if (need > memoryMib)
      throw new AppError(
        'NO_RUNNER',
        `the program needs ${need} MiB; this node has ${memoryMib} MiB for all programs`,
      );
    if (this.#isClosed) throw new AppError('SHUTTING_DOWN', 'the node is shutting down');
    const kept = order.isKept ? undefined : this.#keptOf(order.key);
    if (kept) return kept.state === 'idle' && kept.sandbox?.isUsable ? this.#occupy(kept, order) : undefined;
    const idle = [...this.#places].filter(({ state }) => state === 'idle');
    const warm = order.isKept ? undefined : idle.find(({ key }) => key === order.key);
    if (warm?.sandbox?.isUsable) return this.#occupy(warm, order);
    if (this.list(order.key).length >= PROGRAM_LIMITS.sandboxesPerProgram) return undefined;
    // What is mounted has to be there when a sandbox starts.
    const spare = order.attach
      ? undefined
      : idle.find(
          ({ key, runtime, sandbox }) => key === null && runtime === order.runtime && sandbox?.isUsable,
        );
    if (this.#makeRoom(need - (spare?.reservedMib ?? 0), spare) && (spare || this.#freeSlots.length > 0)) {
      const place = spare ?? this.#addPlace(order.runtime, need);
      place.reservedMib = need;
      place.isKept = order.isKept ?? false;
      place.owner = order.owner;
      if (!spare) place.key = order.key;
      return this.#occupy(place, order);
    }
    return undefined;
  }

  #keptOf(key: string): Place | undefined {
    return [...this.#places].find((place) => place.isKept && place.key === key && place.state !== 'ending');
  }

  #occupy(place: Place, { client }: Order): Place {
    return Object.assign(place, { state: 'busy', client, busySinceMs: performance.now() });
  }

  /** Whether there is room now; if not, those go that were idle for longest, and there will be when they are gone. */
  #makeRoom(needMib: number, except: Place | undefined): boolean {
    let missing = this.#reservedMib + needMib - this.#options.memoryMib;
    if (missing <= 0) return true;
    const isLeaving = ({ state }: Place) => state === 'ending';
    for (const place of this.#places) if (isLeaving(place)) missing -= place.reservedMib;
    const idle = [...this.#places].filter(
      (place) => place.state === 'idle' && place !== except && !place.isKept,
    );
    for (const place of idle.toSorted((a, b) => a.idleSinceMs - b.idleSinceMs)) {
      if (missing <= 0) break;
      missing -= place.reservedMib;
      void this.#end(place);
    }
    return false;
  }

  #addPlace(runtime: RuntimeName, reservedMib: number): Place {
    const place: Place = {
      slot: this.#freeSlots.pop()!,
      isKept: false,
      owner: '',
      givesWay: false,
      runtime,
      key: null,
      reservedMib,
      sandbox: undefined,
      attached: undefined,
      state: 'starting',
      idleSinceMs: 0,
      client: '',
      busySinceMs: 0,
    };
    this.#places.add(place);
    return place;
  }

  async #start(place: Place, attach?: Order['attach']): Promise<void> {
    const { kits, groups, filterPath, uidBase } = this.#options;
    const kit = kits.get(place.runtime)!;
    place.attached = attach?.();
    const { mounts, uid = uidBase + place.slot } = (await place.attached) ?? {};
    // Volumes are made and mounted for it, so that it may have ended since: nobody would end what is started now.
    if (place.state === 'ending')
      throw this.#isClosed
        ? new AppError('SHUTTING_DOWN', 'the node is shutting down')
        : new AppError('PROGRAM_CRASHED', 'the sandbox was stopped before it started');
    const group = groups.create(`${place.slot}-${++this.#made}`, {
      memoryBytes: place.reservedMib * 1024 * 1024,
      tasks: PROGRAM_LIMITS.tasks,
      cpus: 1,
    });
    place.sandbox = new Sandbox({ kit, uid, group, filterPath, mounts });
    await place.sandbox.start();
  }

  async #fill(place: Place, order: Order): Promise<Start> {
    const start = place.sandbox ? 'spare' : 'cold';
    place.key = order.key;
    if (!place.sandbox) await this.#start(place, order.attach);
    place.sandbox!.load(order.code, order.log(), order.isKept);
    return start;
  }

  #release(place: Place): void {
    this.#recent.note(heldBy(place), performance.now());
    if (place.state === 'ending') return;
    // A program that came to be kept meanwhile is called where it is kept.
    const isOld = !place.isKept && place.key !== null && this.#keptOf(place.key) !== undefined;
    if (!place.sandbox?.isUsable || this.#isClosed || isOld) void this.#end(place);
    else {
      place.state = 'idle';
      place.idleSinceMs = performance.now();
      this.#grant();
    }
    this.#refillSoon(SPARE_DELAY_MS);
  }

  #end(place: Place): Promise<void> {
    place.gone ??= this.#remove(place);
    return place.gone;
  }

  async #remove(place: Place): Promise<void> {
    place.state = 'ending';
    await place.sandbox?.destroy();
    // They may still be on their way. Who ordered them is told where they cannot be had.
    const attached = await place.attached?.catch(() => undefined);
    await this.#letGo(place.sandbox ? attached?.detach() : attached?.discard());
    this.#places.delete(place);
    this.#freeSlots.push(place.slot);
    this.#grant();
  }

  async #letGo(volumes: Promise<void> | undefined): Promise<void> {
    await volumes?.catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'volumes of a program could not be let go');
    });
  }

  async #wait(order: Order): Promise<Place> {
    const { client, key, ending } = order;
    this.#admit(order);
    const { promise, resolve, reject } = Promise.withResolvers<Place>();
    const waiter: Waiter = { order, client, key, grant: resolve, refuse: reject };
    const timer = setTimeout(
      () => this.#refuse(waiter, 'no sandbox became free in time'),
      PROGRAM_LIMITS.waitMs,
    );
    const leave = () => this.#refuse(waiter, (ending!.reason as AppError).message);
    ending?.addEventListener('abort', leave, { once: true });
    this.#waiters.push(waiter);
    if (ending?.aborted) leave();
    this.#shareSoon();
    return promise.finally(() => {
      clearTimeout(timer);
      ending?.removeEventListener('abort', leave);
    });
  }

  /** Makes a place in the line. Throws OVERLOADED. */
  #admit({ client, key }: Order): void {
    const countOf = (isSo: (waiter: Waiter) => boolean) => this.#waiters.filter(isSo).length;
    const isOwn = (waiter: Waiter) => waiter.key === key;
    const program = countOf(isOwn) >= PROGRAM_LIMITS.waitingPerProgram;
    if (!program && this.#waiters.length < PROGRAM_LIMITS.waiting) return;
    const other = chooseToRefuse(program ? this.#waiters.filter(isOwn) : this.#waiters, client);
    if (!other) throw new AppError('OVERLOADED', 'too many program calls are waiting');
    this.#refuse(other, 'too many program calls are waiting, most of them from one caller');
  }

  #refuse(waiter: Waiter, why: string): void {
    const at = this.#waiters.indexOf(waiter);
    if (at < 0) return;
    this.#waiters.splice(at, 1);
    waiter.refuse(new AppError('OVERLOADED', why));
  }

  /** Serves who can be served now: who holds and had least first, then in the order in which they came. */
  #grant(): void {
    if (this.#isClosed) return;
    const nowMs = performance.now();
    const dueOf = ({ client, order }: Waiter) =>
      this.#recent.of(client, nowMs) + this.#needOf(order) * this.#contendedMs;
    for (const waiter of orderWaiters(this.#waiters, this.#held(), dueOf)) {
      const place = this.#take(waiter.order);
      if (!place) continue;
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      waiter.grant(place);
    }
  }

  #held(): (Held & { readonly place: Place })[] {
    return [...this.#places].flatMap((place) =>
      place.state === 'busy' && place.key !== null ? [{ ...heldBy(place), place }] : [],
    );
  }

  /** While calls wait, those end that hold more than their share for long enough, one at a time. */
  #shareSoon(): void {
    this.#sharing ??= setTimeout(() => {
      this.#sharing = undefined;
      if (this.#waiters.length === 0 || this.#isClosed) return;
      const { memoryMib } = this.#options;
      const contendedMs = this.#contendedMs;
      const rules = { memoryMib, contendedMs, sandboxesPerProgram: PROGRAM_LIMITS.sandboxesPerProgram };
      const isOneLeaving = [...this.#places].some(({ state }) => state === 'ending');
      const held = this.#held().filter(({ place }) => !place.isKept);
      const over = isOneLeaving ? undefined : chooseToEnd(held, this.#waiters, rules, performance.now());
      over?.place.sandbox?.end(
        new AppError(
          'PROGRAM_TIMED_OUT',
          `others are waiting: a call above its caller's share of the node is limited to ${contendedMs / 1000} s, or less where it takes more than a quarter of the memory`,
        ),
      );
      this.#shareSoon();
    }, SHARE_LOOK_MS);
  }

  #endIdle(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const place of this.#places)
      if (place.state === 'idle' && place.key !== null && !place.isKept && place.idleSinceMs < before)
        void this.#end(place);
  }

  #refillSoon(delayMs: number): void {
    if (this.#isClosed || this.#options.spares === 0) return;
    this.#refilling ??= setTimeout(() => {
      this.#refilling = undefined;
      this.#refill();
    }, delayMs);
  }

  /** Blank sandboxes are made where nobody needs the room. */
  #refill(): void {
    const { kits, spares, memoryMib } = this.#options;
    if (this.#waiters.length > 0 || this.#isClosed) return;
    for (const { runtime, allowanceMib } of kits.values()) {
      const own = [...this.#places].filter(
        ({ key, runtime: of, state }) => key === null && of === runtime && state !== 'ending',
      );
      const fits = this.#reservedMib + allowanceMib <= memoryMib && this.#freeSlots.length > 0;
      if (own.length < spares && fits) void this.#addSpare(runtime, allowanceMib);
    }
  }

  async #addSpare(runtime: RuntimeName, allowanceMib: number): Promise<void> {
    const place = this.#addPlace(runtime, allowanceMib);
    try {
      await this.#start(place);
      this.#release(place);
    } catch (error) {
      if (!this.#isClosed) this.#options.log.error({ err: error, runtime }, 'a sandbox could not be started');
      await this.#end(place);
    }
  }
}
