import { join } from 'node:path';
import { JsonLines, type Logger, makeDirectory, readJsonOrSetAside, writeFileAtomically } from '@skerry/kit';
import type { Target } from '../registry.ts';
import { Crowd } from './crowd.ts';
import { History, type HistoryRecord, KEPT_MS, type Result } from './history.ts';

/** A service that was checked at least once. */
export interface Service {
  /** From 1, given once and never to another. */
  readonly id: number;
  target: Target;
  readonly createdMs: number;
  /** When it was in the network last; one that is not any more is shown until its results are too old. */
  seenMs: number;
  readonly history: History;
}

interface SnapshotFile {
  readonly sequence: number;
  readonly nextId: number;
  readonly services: readonly (Omit<Service, 'history'> & { readonly history: HistoryRecord })[];
}

interface Line extends Result {
  readonly n: number;
  readonly id: number;
}

/** A network does not have more; strangers may announce what they like, and share these (crowd.ts). What the operator names is kept beside them. */
const SERVICES_MAX = 10_000;
/** Between two looks nobody grows older than by this: longer than any interval, shorter than a clock that is set right jumps. */
const STEP_MAX_MS = 2 * 3_600_000;

function parseLine(value: unknown): Line | undefined {
  const line = value as Line;
  return Number.isInteger(line.n) && Number.isInteger(line.id) && Number.isFinite(line.atMs)
    ? line
    : undefined;
}

/** Throws where it is none. */
function parseSnapshot(value: unknown) {
  const { sequence, nextId, services } = value as SnapshotFile;
  if (!Number.isInteger(sequence) || !Number.isInteger(nextId)) throw new Error('it is not a snapshot');
  const restored = services.map(({ history, ...service }): [string, Service] => [
    service.target.key,
    { ...service, history: History.fromRecord(history) },
  ]);
  return { sequence, nextId, services: restored };
}

/**
 * The services and what became of their checks, in a directory: a snapshot, and a journal of what came after it. Each
 * line of the journal has a number, and the snapshot says up to which it goes; so a kill at any moment counts nothing twice.
 */
export class Store {
  readonly #snapshotFile: string;
  readonly #services = new Map<string, Service>();
  readonly #journal: JsonLines<Line>;
  #sequence = 0;
  #nextId = 1;
  /** When the network was looked at last; undefined before the first time. */
  #lookedMs: number | undefined;

  private constructor(snapshotFile: string, journal: JsonLines<Line>) {
    this.#snapshotFile = snapshotFile;
    this.#journal = journal;
  }

  static async open(dir: string, log: Logger): Promise<Store> {
    await makeDirectory(dir);
    const live = async () => {
      await store.#writeSnapshot();
      return [];
    };
    const path = join(dir, 'journal.jsonl');
    const { journal, lines } = await JsonLines.open({ path, parse: parseLine, log, live });
    const store = new Store(join(dir, 'snapshot.json'), journal);
    await store.#restore(lines, log);
    await journal.compact();
    return store;
  }

  get services(): readonly Service[] {
    return [...this.#services.values()];
  }

  /** Compute nodes that announced themselves at some time. */
  computeTargets(): Target[] {
    return this.services.map(({ target }) => target).filter(({ group }) => group === 'compute');
  }

  /**
   * Those of them that answered in the week before they were checked last: whoever left, or never was there, does not count as known for
   * good.
   */
  answeringTargets(): Target[] {
    const answers = ({ target, history: { last, totals } }: Service) =>
      target.group === 'compute' &&
      last !== null &&
      totals.lastSuccessMs !== null &&
      last.atMs - totals.lastSuccessMs < KEPT_MS;
    return this.services.filter(answers).map(({ target }) => target);
  }

  find(id: number): Service | undefined {
    return this.services.find((service) => service.id === id);
  }

  /** Takes in what the network has now. @returns the services to check */
  async sync(targets: readonly Target[], nowMs: number): Promise<Service[]> {
    this.#follow(nowMs);
    let isChanged = false;
    let crowd: Crowd<Service> | undefined;
    const present = new Set<Service>();
    for (const target of targets) {
      let service = this.#services.get(target.key);
      if (!service) {
        if (target.isForeign && this.#services.size >= SERVICES_MAX) {
          crowd ??= new Crowd(this.#services.values(), SERVICES_MAX);
          const oldest = crowd.giveWay(target.url);
          if (!oldest) continue;
          this.#services.delete(oldest.target.key);
          present.delete(oldest);
        }
        service = { id: this.#nextId++, target, createdMs: nowMs, seenMs: nowMs, history: new History() };
        this.#services.set(target.key, service);
        if (target.isForeign) crowd?.add(service);
        isChanged = true;
      }
      service.target = target;
      service.seenMs = nowMs;
      present.add(service);
    }
    for (const [key, { seenMs }] of this.#services)
      if (nowMs - seenMs > KEPT_MS) isChanged = this.#services.delete(key) || isChanged;
    if (isChanged) await this.#journal.compact();
    return [...present];
  }

  /** Only time in which somebody looked makes a service older: none in which nobody did, and none that a clock was set by. */
  #follow(nowMs: number): void {
    const services = this.services;
    if (this.#lookedMs === undefined)
      for (const service of services) service.seenMs = Math.min(service.seenMs, nowMs);
    const lookedMs = this.#lookedMs ?? Math.max(...services.map(({ seenMs }) => seenMs));
    const passedMs = nowMs - lookedMs;
    const countedMs = this.#lookedMs === undefined ? 0 : Math.min(Math.max(0, passedMs), STEP_MAX_MS);
    if (passedMs !== countedMs) for (const service of services) service.seenMs += passedMs - countedMs;
    this.#lookedMs = nowMs;
  }

  /** Keeps results: when it resolves they survive a power cut. */
  async add(results: readonly { readonly service: Service; readonly result: Result }[]): Promise<void> {
    const lines = results.map(({ service, result }) => {
      service.history.add(result);
      return { n: ++this.#sequence, id: service.id, ...result };
    });
    await this.#journal.append(lines);
  }

  async #restore(lines: readonly Line[], log: Logger): Promise<void> {
    const instead = 'the services begin a new history';
    const snapshot = await readJsonOrSetAside(this.#snapshotFile, { parse: parseSnapshot, instead, log });
    if (snapshot) {
      this.#sequence = snapshot.sequence;
      this.#nextId = snapshot.nextId;
      for (const [key, service] of snapshot.services) this.#services.set(key, service);
    }
    const byId = new Map(this.services.map((service) => [service.id, service]));
    for (const { n, id, ...result } of lines) {
      if (n <= this.#sequence) continue;
      // Also where the snapshot is lost: no service is given the id of another.
      this.#nextId = Math.max(this.#nextId, id + 1);
      byId.get(id)?.history.add(result);
      this.#sequence = n;
    }
    // A snapshot is written seldom; what was checked was there.
    for (const service of this.#services.values())
      service.seenMs = Math.max(service.seenMs, service.history.last?.atMs ?? service.seenMs);
  }

  async #writeSnapshot(): Promise<void> {
    const snapshot: SnapshotFile = {
      sequence: this.#sequence,
      nextId: this.#nextId,
      services: this.services.map(({ history, ...service }) => ({ ...service, history: history.toRecord() })),
    };
    await writeFileAtomically(this.#snapshotFile, JSON.stringify(snapshot), 0o600);
  }
}
