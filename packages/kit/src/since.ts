import { fieldsOf } from '@skerry/protocol/forms';
import type { Logger } from './daemon/log.ts';
import { readTextIfAny } from './files/files.ts';
import { followInFile } from './files/followed-file.ts';

/** What is wrong when a process begins was so before, if it was so when the last one ended; parts need so long to find out. */
const SETTLING_MS = 120_000;

/**
 * Since when each of several things is wrong, as far as was seen: nobody knows of the time before somebody looked.
 * It keeps as many names as are wrong; `keepOnly` drops those of what is gone.
 */
export class Since {
  readonly #now: () => number;
  readonly #onChange: () => void;
  readonly #wrong = new Map<string, number>();
  /** As the process before this one saw it. */
  readonly #before: Map<string, number>;
  #settledMs: number | undefined;

  /**
   * @param now Unix milliseconds
   * @param before what was wrong when the process before this one ended, by name: Unix milliseconds since when
   */
  constructor(
    now: () => number,
    before: ReadonlyMap<string, number> = new Map(),
    onChange: () => void = () => {},
  ) {
    this.#now = now;
    this.#before = new Map(before);
    this.#onChange = onChange;
  }

  /**
   * Tells how a thing is. Gives since when it is wrong, Unix milliseconds; null where it is not.
   * @param sinceMs where that is known: it counts unless the thing was wrong before
   */
  note(name: string, isWrong: boolean, sinceMs: number = this.#now()): number | null {
    this.#settle();
    if (!isWrong) {
      if (this.#wrong.delete(name)) this.#onChange();
      return null;
    }
    const known = this.#wrong.get(name);
    const earliest = Math.min(known ?? this.#before.get(name) ?? sinceMs, sinceMs);
    if (earliest === known) return known;
    this.#wrong.set(name, earliest);
    this.#onChange();
    return earliest;
  }

  /** As it was last told. */
  of(name: string): number | null {
    return this.#wrong.get(name) ?? null;
  }

  keepOnly(has: (name: string) => boolean): void {
    for (const name of this.#wrong.keys()) if (!has(name)) this.note(name, false);
  }

  /** What the next process has to know, by name. */
  list(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#before, ...this.#wrong]);
  }

  #settle(): void {
    this.#settledMs ??= this.#now() + SETTLING_MS;
    if (this.#before.size === 0 || this.#now() < this.#settledMs) return;
    this.#before.clear();
    this.#onChange();
  }
}

function readBefore(text: string | undefined): ReadonlyMap<string, number> {
  try {
    const entries = Object.entries(fieldsOf(JSON.parse(text ?? '{}')));
    return new Map(entries.filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])));
  } catch {
    return new Map();
  }
}

/** Times that are kept in a file, for the next process. */
export interface KeptSince extends AsyncDisposable {
  readonly since: Since;
}

/**
 * A file that cannot be read or written costs the times alone: what is wrong is then so since it was seen again.
 * @param now Unix milliseconds
 */
export async function openSince(
  path: string,
  { now, log }: { readonly now: () => number; readonly log: Logger },
): Promise<KeptSince> {
  const complain = (error: unknown) => {
    log.warn({ err: error, path }, 'since when things are wrong could not be kept');
    return undefined;
  };
  const file = followInFile(path, () => `${JSON.stringify(since.list())}\n`, complain);
  const since = new Since(now, readBefore(await readTextIfAny(path).catch(complain)), () => file.changed());
  return { since, [Symbol.asyncDispose]: () => file[Symbol.asyncDispose]() };
}
