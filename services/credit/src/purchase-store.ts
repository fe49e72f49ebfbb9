import { join } from 'node:path';
import { JsonLines, type Logger, makeDirectory, readTextIfAny, writeFileAtomically } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Purchase } from './purchase.ts';

/** How a purchase ended: the message that credits it. */
export interface Settlement {
  readonly id: string;
  readonly itemHash: string;
  readonly settledAtMs: number;
}

export interface PurchaseRecords {
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
  /** Address -> for how many seconds the service ran while its balance was low. */
  readonly warned: Readonly<Record<string, number>>;
}

const NO_PROGRESS: Progress = { scanned: {}, charged: {}, warned: {} };

type Line = { readonly purchase: Purchase } | { readonly settled: Settlement };

function parseLine(value: unknown): Line | undefined {
  const { purchase, settled } = value as Partial<{ purchase: Purchase; settled: Settlement }>;
  if (typeof purchase?.id === 'string') return { purchase };
  return typeof settled?.id === 'string' ? { settled } : undefined;
}

/** Of two lines about one purchase the first counts; of two about its settlement, the last. */
function gather(lines: readonly Line[]): Pick<PurchaseRecords, 'purchases' | 'settlements'> {
  const purchases = new Map<string, Purchase>();
  const settlements = new Map<string, Settlement>();
  for (const line of lines) {
    if ('settled' in line) settlements.set(line.settled.id, line.settled);
    else if (!purchases.has(line.purchase.id)) purchases.set(line.purchase.id, line.purchase);
  }
  return { purchases: [...purchases.values()], settlements: [...settlements.values()] };
}

/**
 * What was bought, on disk before anybody is told: a journal with a line for each purchase with its price, and one when the
 * core node shows it. How far each chain was read is written after the purchases of its blocks.
 */
export class PurchaseStore {
  readonly #journal: JsonLines<Line>;
  readonly #progressFile: string;
  #progress: Progress;
  #writing: Promise<void> = Promise.resolve();

  private constructor(journal: JsonLines<Line>, progressFile: string, progress: Progress) {
    this.#journal = journal;
    this.#progressFile = progressFile;
    this.#progress = progress;
  }

  /** Throws INVALID_CONFIG where the directory cannot be used. */
  static async open(dir: string, log: Logger): Promise<{ store: PurchaseStore; records: PurchaseRecords }> {
    try {
      await makeDirectory(dir);
      const path = join(dir, 'purchases.jsonl');
      const { journal, lines } = await JsonLines.open({ path, parse: parseLine, log });
      const progressFile = join(dir, 'progress.json');
      const text = (await readTextIfAny(progressFile)) ?? '{}';
      const progress = { ...NO_PROGRESS, ...(JSON.parse(text) as Partial<Progress>) };
      const store = new PurchaseStore(journal, progressFile, progress);
      return { store, records: { ...gather(lines), progress } };
    } catch (cause) {
      throw new AppError('INVALID_CONFIG', `cannot read ${dir} (${(cause as Error).message})`, { cause });
    }
  }

  addPurchases(purchases: readonly Purchase[]): Promise<void> {
    return this.#journal.append(purchases.map((purchase) => ({ purchase })));
  }

  settle(settled: Settlement): Promise<void> {
    return this.#journal.append([{ settled }]);
  }

  /** Whole or not at all; one after another. */
  writeProgress(change: Partial<Progress>): Promise<void> {
    this.#progress = { ...this.#progress, ...change };
    const write = () => writeFileAtomically(this.#progressFile, JSON.stringify(this.#progress), 0o600);
    this.#writing = this.#writing.then(write, write);
    return this.#writing;
  }
}
