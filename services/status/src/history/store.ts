import { mkdir, open, readFile, rename, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@skerry/kit';
import type { Target } from '../registry.ts';
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

/** Results that are written to the journal before the whole is written anew. */
const JOURNAL_LINES_MAX = 50_000;
/** A network does not have more; strangers may announce what they like. */
export const SERVICES_MAX = 10_000;

function parseLine(text: string): Line | undefined {
  try {
    const line = JSON.parse(text) as Line;
    return Number.isInteger(line?.n) && Number.isInteger(line.id) && Number.isFinite(line.atMs)
      ? line
      : undefined;
  } catch {
    return undefined;
  }
}

const readText = (path: string) =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });

/**
 * The services and what became of their checks, in a directory: a snapshot, and a journal of what came after it. Each
 * line of the journal has a number, and the snapshot says up to which it goes; so a kill at any moment counts nothing twice.
 */
export class Store {
  readonly #dir: string;
  readonly #services = new Map<string, Service>();
  #sequence = 0;
  #lines = 0;
  #nextId = 1;

  private constructor(dir: string) {
    this.#dir = dir;
  }

  static async open(dir: string, log: Logger): Promise<Store> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const store = new Store(dir);
    await store.#load(log);
    // Also so that no line is added to one that was cut off.
    await store.#writeSnapshot();
    return store;
  }

  get services(): readonly Service[] {
    return [...this.#services.values()];
  }

  find(id: number): Service | undefined {
    return this.services.find((service) => service.id === id);
  }

  /** Takes in what the network has now. @returns the services to check */
  async sync(targets: readonly Target[], nowMs: number): Promise<Service[]> {
    let isChanged = false;
    const present: Service[] = [];
    for (const target of targets) {
      let service = this.#services.get(target.key);
      if (!service) {
        if (this.#services.size >= SERVICES_MAX) continue;
        service = { id: this.#nextId++, target, createdMs: nowMs, seenMs: nowMs, history: new History() };
        this.#services.set(target.key, service);
        isChanged = true;
      }
      service.target = target;
      service.seenMs = nowMs;
      present.push(service);
    }
    for (const [key, { seenMs }] of this.#services)
      if (nowMs - seenMs > KEPT_MS) isChanged = this.#services.delete(key) || isChanged;
    if (isChanged) await this.#writeSnapshot();
    return present;
  }

  /** Keeps results: when it resolves they survive the end of the process. */
  async add(results: readonly { readonly service: Service; readonly result: Result }[]): Promise<void> {
    if (results.length === 0) return;
    const lines = results.map(({ service, result }) => {
      service.history.add(result);
      const line: Line = { n: ++this.#sequence, id: service.id, ...result };
      return `${JSON.stringify(line)}\n`;
    });
    const file = await open(this.#path('journal.jsonl'), 'a', 0o600);
    try {
      await file.appendFile(lines.join(''));
    } finally {
      await file.close();
    }
    this.#lines += lines.length;
    if (this.#lines > JOURNAL_LINES_MAX) await this.#writeSnapshot();
  }

  #path(name: string): string {
    return join(this.#dir, name);
  }

  async #load(log: Logger): Promise<void> {
    const text = await readText(this.#path('snapshot.json'));
    if (text !== '') this.#restore(JSON.parse(text) as SnapshotFile);
    const byId = new Map(this.services.map((service) => [service.id, service]));
    let lost = 0;
    for (const raw of (await readText(this.#path('journal.jsonl'))).split('\n')) {
      if (raw === '') continue;
      const line = parseLine(raw);
      if (!line) lost++;
      if (!line || line.n <= this.#sequence) continue;
      const { n, id, ...result } = line;
      byId.get(id)?.history.add(result);
      this.#sequence = n;
    }
    if (lost > 0) log.warn({ lines: lost }, 'lines of the journal were cut off and are left out');
  }

  #restore({ sequence, nextId, services }: SnapshotFile): void {
    this.#sequence = sequence;
    this.#nextId = nextId;
    for (const { history, ...service } of services)
      this.#services.set(service.target.key, { ...service, history: History.fromRecord(history) });
  }

  async #writeSnapshot(): Promise<void> {
    const snapshot: SnapshotFile = {
      sequence: this.#sequence,
      nextId: this.#nextId,
      services: this.services.map(({ history, ...service }) => ({ ...service, history: history.toRecord() })),
    };
    const path = this.#path('snapshot.json');
    const file = await open(`${path}.new`, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(snapshot));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
    const journal = await open(this.#path('journal.jsonl'), 'a', 0o600);
    await journal.close();
    await truncate(this.#path('journal.jsonl'));
    this.#lines = 0;
  }
}
