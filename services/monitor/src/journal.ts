import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { NodeKind } from '@skerry/protocol';
import type { PublishedRecord } from './probe/measure.ts';

export interface JournalEntry {
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
const DONE_MAX = 48;
export const WAITING_MAX = 1_000;

type State = 'measuring' | 'signed' | 'done';
const STATE_OF = { jsonl: 'measuring', signed: 'signed', done: 'done' } as const;
const RANK: Readonly<Record<State, number>> = { measuring: 0, signed: 1, done: 2 };

/** Writes a whole file or nothing. */
async function writeWhole(path: string, text: string): Promise<void> {
  const file = await open(`${path}.new`, 'w');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}

/** The lines that were written whole; a monitor that was killed may have left a part of one at the end. */
export function parseJournal(text: string): JournalEntry[] {
  return text.split('\n').flatMap((line): JournalEntry[] => {
    try {
      const entry = JSON.parse(line) as JournalEntry;
      return typeof entry?.record?.node_id === 'string' && (entry.kind === 'core' || entry.kind === 'compute')
        ? [entry]
        : [];
    } catch {
      return [];
    }
  });
}

const ANSWERED = 'answered.json';

/**
 * What this monitor measured and has not published: a file for each hour, a line for each node, on disk before the next
 * one. An hour goes from `measuring` to `signed` to `done`, and never back.
 */
export class Journal {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  static async create(dir: string): Promise<Journal> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return new Journal(dir);
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

  async append(startMs: number, entry: JournalEntry): Promise<void> {
    const file = await open(this.#path(startMs, 'jsonl'), 'a', 0o600);
    try {
      // A line of its own, also after one that was cut off.
      await file.appendFile(`\n${JSON.stringify(entry)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  async read(startMs: number): Promise<JournalEntry[]> {
    const text = await readFile(this.#path(startMs, 'jsonl'), 'utf8').catch(() => '');
    return parseJournal(text);
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
    await writeWhole(join(this.#dir, ANSWERED), JSON.stringify(Object.fromEntries(answered)));
  }

  async sign(startMs: number, report: SignedReport): Promise<void> {
    await writeWhole(this.#path(startMs, 'signed'), JSON.stringify(report));
    await rm(this.#path(startMs, 'jsonl'), { force: true });
  }

  async readSigned(startMs: number): Promise<SignedReport> {
    return JSON.parse(await readFile(this.#path(startMs, 'signed'), 'utf8')) as SignedReport;
  }

  /** Nothing more to do for this hour; older hours are forgotten in time. */
  async finish(startMs: number, note: string): Promise<void> {
    await writeWhole(this.#path(startMs, 'done'), `${note}\n`);
    await rm(this.#path(startMs, 'signed'), { force: true });
    await rm(this.#path(startMs, 'jsonl'), { force: true });
    const done = [...(await this.listHours())].flatMap(([hour, state]) => (state === 'done' ? [hour] : []));
    for (const hour of done.slice(0, -DONE_MAX)) await rm(this.#path(hour, 'done'), { force: true });
  }
}
