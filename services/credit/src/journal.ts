import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@skerry/protocol';
import type { Purchase } from './purchase.ts';

/** How a purchase ended: the message that credits it. */
export interface Settlement {
  readonly id: string;
  readonly itemHash: string;
  readonly settledAtMs: number;
}

export interface JournalContent {
  readonly purchases: readonly Purchase[];
  readonly settlements: readonly Settlement[];
  readonly progress: Progress;
}

/** How far the service is. */
export interface Progress {
  /** Place of a sale -> the last block whose transfers are all in the journal. */
  readonly scanned: Readonly<Record<string, number>>;
  /** Kind of a resource -> when it was looked for what to charge, Unix seconds. */
  readonly charged: Readonly<Record<string, number>>;
}

const NO_PROGRESS: Progress = { scanned: {}, charged: {} };

type Line = { readonly purchase: Purchase } | { readonly settled: Settlement };

/** The lines that were written whole: a service that was killed may have left a part of one. */
export function parseLines(text: string): Pick<JournalContent, 'purchases' | 'settlements'> {
  const purchases = new Map<string, Purchase>();
  const settlements = new Map<string, Settlement>();
  for (const line of text.split('\n')) {
    const read = parseLine(line);
    if (!read) continue;
    if ('purchase' in read) purchases.set(read.purchase.id, purchases.get(read.purchase.id) ?? read.purchase);
    else settlements.set(read.settled.id, read.settled);
  }
  return { purchases: [...purchases.values()], settlements: [...settlements.values()] };
}

function parseLine(line: string): Line | undefined {
  try {
    const value = JSON.parse(line) as Partial<{ purchase: Purchase; settled: Settlement }> | null;
    if (typeof value?.purchase?.id === 'string') return { purchase: value.purchase };
    return typeof value?.settled?.id === 'string' ? { settled: value.settled } : undefined;
  } catch {
    return undefined;
  }
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return '';
    throw new AppError('INVALID_CONFIG', `${path} cannot be read (${code})`, { cause });
  }
}

/**
 * What was bought, on disk before anybody is told: a line for each purchase with its price, and one when the core node
 * shows it. How far each chain was read is written after the purchases of its blocks.
 */
export class Journal {
  readonly #lines: string;
  readonly #progressFile: string;
  #progress: Progress = NO_PROGRESS;
  #writing: Promise<void> = Promise.resolve();

  constructor(dir: string) {
    this.#lines = join(dir, 'purchases.jsonl');
    this.#progressFile = join(dir, 'progress.json');
  }

  static async open(dir: string): Promise<{ journal: Journal; content: JournalContent }> {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const journal = new Journal(dir);
    const progress = await readIfThere(journal.#progressFile);
    if (progress !== '')
      journal.#progress = { ...NO_PROGRESS, ...(JSON.parse(progress) as Partial<Progress>) };
    const content = { ...parseLines(await readIfThere(journal.#lines)), progress: journal.#progress };
    return { journal, content };
  }

  async #append(lines: readonly Line[]): Promise<void> {
    const file = await open(this.#lines, 'a', 0o600);
    try {
      // A line of its own, also after one that was cut off.
      await file.appendFile(`\n${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  addPurchases(purchases: readonly Purchase[]): Promise<void> {
    return this.#append(purchases.map((purchase) => ({ purchase })));
  }

  settle(settled: Settlement): Promise<void> {
    return this.#append([{ settled }]);
  }

  /** Whole or not at all; one after another. */
  writeProgress(change: Partial<Progress>): Promise<void> {
    this.#progress = { ...this.#progress, ...change };
    this.#writing = this.#writing.then(
      () => this.#writeProgress(),
      () => this.#writeProgress(),
    );
    return this.#writing;
  }

  async #writeProgress(): Promise<void> {
    const draft = `${this.#progressFile}.new`;
    const file = await open(draft, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(this.#progress));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, this.#progressFile);
  }
}
