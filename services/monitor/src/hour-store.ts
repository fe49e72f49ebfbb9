import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AnnouncedNode } from '@skerry/client';
import { JsonLines, type Logger, makeDirectory, readJsonOrSetAside, writeFileAtomically } from '@skerry/kit';
import { fieldsOf, type NodeKind } from '@skerry/protocol';
import type { PublishedRecord } from './probe/measure.ts';

export interface HourEntry {
  readonly kind: NodeKind;
  readonly record: PublishedRecord;
}

/** What is to be sent, byte for byte: sent twice it is still one message. */
export interface SignedReport {
  readonly itemHash: string;
  readonly body: string;
  /** A file to store before, where the content is too long for the message. */
  readonly content?: string | undefined;
}

const FILE = /^([0-9]{1,16})\.(jsonl|signed|done)$/;
/** Hours that are remembered as done, and hours that may wait to be sent. */
export const DONE_MAX = 48;
export const WAITING_MAX = 1_000;

type State = 'measuring' | 'signed' | 'done';
const STATE_OF = { jsonl: 'measuring', signed: 'signed', done: 'done' } as const;
const RANK: Readonly<Record<State, number>> = { measuring: 0, signed: 1, done: 2 };

function parseEntry(value: unknown): HourEntry | undefined {
  const { kind, record } = value as HourEntry;
  return typeof record.node_id === 'string' && (kind === 'core' || kind === 'compute')
    ? { kind, record }
    : undefined;
}

/** Before hours could have several reports, the one stood alone. Throws where it is none. */
function parseSigned(value: unknown): readonly SignedReport[] {
  const reports = (Array.isArray(value) ? value : [value]) as readonly SignedReport[];
  if (!reports.every(({ itemHash, body }) => typeof itemHash === 'string' && typeof body === 'string'))
    throw new Error('it is not what an hour has to be sent');
  return reports;
}

const ANSWERED = 'answered.json';
const ANNOUNCED = 'announced.json';

function parseAnnounced(value: unknown): readonly AnnouncedNode[] {
  const isNode = (one: unknown) => {
    const { nodeId, address, url } = fieldsOf(one);
    return [nodeId, address, url].every((text) => typeof text === 'string');
  };
  if (!Array.isArray(value) || !value.every(isNode)) throw new Error('it is not a list of nodes');
  return value;
}

/**
 * What this monitor measured and has not published: a journal for each hour, a line for each node, on disk before the next
 * one. An hour goes from `measuring` to `signed` to `done`, and never back.
 */
export class HourStore {
  readonly #dir: string;
  readonly #log: Logger;
  readonly #journals = new Map<number, Promise<JsonLines<HourEntry>>>();

  private constructor(dir: string, log: Logger) {
    this.#dir = dir;
    this.#log = log;
  }

  static async create(dir: string, log: Logger): Promise<HourStore> {
    await makeDirectory(dir);
    return new HourStore(dir, log);
  }

  #path(startMs: number, kind: keyof typeof STATE_OF): string {
    return join(this.#dir, `${startMs}.${kind}`);
  }

  /** The hours that it knows of, oldest first, and how far each is. */
  async listHours(): Promise<Map<number, State>> {
    const hours = new Map<number, State>();
    for (const name of await readdir(this.#dir)) {
      const [, start, kind] = FILE.exec(name) ?? [];
      if (start === undefined) continue;
      const state = STATE_OF[kind as keyof typeof STATE_OF];
      const before = hours.get(Number(start));
      if (before === undefined || RANK[state] > RANK[before]) hours.set(Number(start), state);
    }
    return new Map([...hours].sort(([a], [b]) => a - b));
  }

  #open(startMs: number) {
    return JsonLines.open({ path: this.#path(startMs, 'jsonl'), parse: parseEntry, log: this.#log });
  }

  async append(startMs: number, entry: HourEntry): Promise<void> {
    const journal = this.#journals.get(startMs) ?? this.#open(startMs).then((opened) => opened.journal);
    this.#journals.set(startMs, journal);
    journal.catch(() => this.#journals.delete(startMs));
    await (await journal).append([entry]);
  }

  async read(startMs: number): Promise<readonly HourEntry[]> {
    return (await this.#open(startMs)).lines;
  }

  async #removeJournal(startMs: number): Promise<void> {
    this.#journals.delete(startMs);
    await rm(this.#path(startMs, 'jsonl'), { force: true });
  }

  /** Which nodes answered lately, and in which hour. What cannot be read is as good as nothing: it is learned again. */
  async readAnswered(): Promise<Map<string, number>> {
    const text = await readFile(join(this.#dir, ANSWERED), 'utf8').catch(() => '');
    try {
      return new Map(Object.entries(JSON.parse(text) as Record<string, number>));
    } catch {
      return new Map();
    }
  }

  async keepAnswered(answered: ReadonlyMap<string, number>): Promise<void> {
    const text = JSON.stringify(Object.fromEntries(answered));
    await writeFileAtomically(join(this.#dir, ANSWERED), text, 0o600);
  }

  /** Where nodes said to be that answered lately. */
  async readAnnounced(): Promise<readonly AnnouncedNode[]> {
    const options = { parse: parseAnnounced, instead: 'announcements are read anew', log: this.#log };
    return (await readJsonOrSetAside(join(this.#dir, ANNOUNCED), options)) ?? [];
  }

  async keepAnnounced(nodes: readonly AnnouncedNode[]): Promise<void> {
    await writeFileAtomically(join(this.#dir, ANNOUNCED), JSON.stringify(nodes), 0o600);
  }

  async sign(startMs: number, reports: readonly SignedReport[]): Promise<void> {
    await writeFileAtomically(this.#path(startMs, 'signed'), JSON.stringify(reports), 0o600);
    await this.#removeJournal(startMs);
  }

  /** As if nothing had been measured in that hour. */
  drop(startMs: number): Promise<void> {
    return this.#removeJournal(startMs);
  }

  /** None where they cannot be read: what was measured is lost, and the hours behind it are not. */
  async readSigned(startMs: number): Promise<readonly SignedReport[]> {
    const instead = 'the hour is not published';
    const path = this.#path(startMs, 'signed');
    return (await readJsonOrSetAside(path, { parse: parseSigned, instead, log: this.#log })) ?? [];
  }

  /** Nothing more to do for this hour; older hours are forgotten in time. */
  async finish(startMs: number, note: string): Promise<void> {
    await writeFileAtomically(this.#path(startMs, 'done'), `${note}\n`, 0o600);
    await rm(this.#path(startMs, 'signed'), { force: true });
    await this.#removeJournal(startMs);
    const done = [...(await this.listHours())].flatMap(([hour, state]) => (state === 'done' ? [hour] : []));
    for (const hour of done.slice(0, -DONE_MAX)) await rm(this.#path(hour, 'done'), { force: true });
  }
}
