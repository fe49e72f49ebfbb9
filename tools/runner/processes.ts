import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Carries the tree's mark to every process that inherits its environment, through any number of sessions. */
const MARK_VARIABLE = 'SKERRY_TEST_TREE';
const ROUND_MS = 50;
/** How often it is noted which processes the trees have that are watched. */
const LOOK_MS = 250;
const LAST_WORDS_BYTES = 2_000;

/** One process of the tree, as /proc tells (proc(5)). */
export interface Descendant {
  readonly pid: number;
  /** What tells it from a later process of the same number. */
  readonly startTicks: string;
  readonly command: string;
}

interface Entry extends Omit<Descendant, 'command'> {
  readonly key: string;
  readonly parent: number;
  readonly session: number;
  readonly isZombie: boolean;
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function readEntry(pid: number): Entry | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  if (stat === undefined) return undefined;
  // The program's name before these may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const startTicks = fields[19] ?? '';
  return {
    key: `${pid}/${startTicks}`,
    pid,
    parent: Number(fields[1]),
    session: Number(fields[3]),
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
    startTicks,
  };
}

/** As read when each process was first seen. */
const seen = new Map<number, Entry>();

/**
 * Everything that runs; nothing where there is no /proc. Reading some hundred files several times a second takes a tenth of
 * the time of tests, and what a process descends from shows when it is new or loses its parent: only then is it read, unless
 * all are to be read again.
 */
function readEntries(isThorough: boolean): Entry[] {
  const names = attempt(() => readdirSync('/proc')) ?? [];
  const pids = new Set(names.filter((name) => /^\d+$/.test(name)).map(Number));
  const gone = new Set([...seen.keys()].filter((pid) => !pids.has(pid)));
  for (const [pid, { parent }] of seen) if (isThorough || gone.has(pid) || gone.has(parent)) seen.delete(pid);
  return [...pids].flatMap((pid) => {
    const entry = seen.get(pid) ?? readEntry(pid);
    if (entry) seen.set(pid, entry);
    return entry ?? [];
  });
}

const readEnvironment = (pid: number): string =>
  attempt(() => readFileSync(`/proc/${pid}/environ`, 'latin1')) ?? '';

const readCommand = (pid: number): string =>
  (attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ?? '').split('\0').join(' ').trim();

/** The kernel's own have neither environment nor command (kthreads(7)). */
const KERNEL_THREADS = 2;
/** What becomes another program has neither for a moment. */
const BECOMING_MS = 5_000;

/** The last that a process wrote, where it writes into a file of its own. */
export function readLastWords(pid: number): string | undefined {
  for (const fd of [1, 2]) {
    const words = attempt(() => {
      const path = readlinkSync(`/proc/${pid}/fd/${fd}`);
      return statSync(path).isFile() ? readFileSync(path).subarray(-LAST_WORDS_BYTES).toString() : undefined;
    });
    if (words) return words;
  }
  return undefined;
}

/** They are looked at together: reading all that runs costs the same for one as for all. */
const watched = new Set<(entries: readonly Entry[]) => void>();
let watching: NodeJS.Timeout | undefined;

function lookAtWatched(): void {
  const entries = readEntries(false);
  for (const note of watched) note(entries);
}

/**
 * A process with everything that it started and that this started in turn. A daemon may leave its parent and its session, so
 * three signs are taken: its parent, its session (both as often as it is looked at), and the mark in its environment.
 */
export class ProcessTree {
  readonly #known = new Map<string, Entry>();
  readonly #mark: string | undefined;
  /** Something could not be asked whose it is, when it was last looked thoroughly. */
  #isUnsure = false;

  /** @param mark what `markedEnvironment` put into the environment of the root */
  constructor(root: number, mark?: string) {
    this.#mark = mark;
    const entry = readEntry(root);
    if (entry) this.#known.set(entry.key, entry);
  }

  /** Takes note of what runs, time and again, until it is disposed. */
  watch(): Disposable {
    const note = (entries: readonly Entry[]) => this.#note(entries, false);
    watched.add(note);
    watching ??= setInterval(lookAtWatched, LOOK_MS);
    return {
      [Symbol.dispose]: () => {
        watched.delete(note);
        if (watched.size > 0) return;
        clearInterval(watching);
        watching = undefined;
      },
    };
  }

  /** Takes note of what runs now. */
  look(isThorough = false): void {
    this.#note(readEntries(isThorough), isThorough);
  }

  #note(entries: readonly Entry[], isThorough: boolean): void {
    if (isThorough) this.#isUnsure = false;
    const pids = new Set<number>();
    for (const { key, pid } of entries) if (this.#known.has(key)) pids.add(pid);
    // A session outlives the process that began it.
    const sessions = new Set(
      [...this.#known.values()].filter((one) => one.session === one.pid).map((one) => one.pid),
    );
    for (let found = true; found; ) {
      found = false;
      for (const entry of entries) {
        if (pids.has(entry.pid) || entry.pid === process.pid) continue;
        const isOurs =
          pids.has(entry.parent) || sessions.has(entry.session) || (isThorough && this.#isMarked(entry));
        if (!isOurs) continue;
        found = true;
        pids.add(entry.pid);
        if (entry.session === entry.pid) sessions.add(entry.pid);
        this.#known.set(entry.key, entry);
      }
    }
  }

  #isMarked({ pid, parent, isZombie }: Entry): boolean {
    if (this.#mark === undefined) return false;
    let environment = readEnvironment(pid);
    if (environment === '' && !isZombie && ![pid, parent].includes(KERNEL_THREADS)) {
      if (readCommand(pid) === '' && readEntry(pid) !== undefined) this.#isUnsure = true;
      // It may have become another one meanwhile.
      environment = readEnvironment(pid);
    }
    const marks = environment.split('\0').find((entry) => entry.startsWith(`${MARK_VARIABLE}=`));
    return (
      marks
        ?.slice(MARK_VARIABLE.length + 1)
        .split(':')
        .includes(this.#mark) ?? false
    );
  }

  /** What has been seen of it, whether or not it still runs. */
  listKnown(): Pick<Descendant, 'pid' | 'startTicks'>[] {
    return [...this.#known.values()];
  }

  /** What still runs of it. */
  listLiving(): Descendant[] {
    this.look(true);
    return [...this.#known.values()]
      .filter((known) => {
        const now = readEntry(known.pid);
        return now !== undefined && !now.isZombie && now.startTicks === known.startTicks;
      })
      .map(({ pid, startTicks }) => ({ pid, startTicks, command: readCommand(pid) || '?' }));
  }

  /** Resolves with what is left after `limitMs`, or with nothing as soon as nothing is, which takes a moment more while something cannot be asked. */
  async waitForEnd(limitMs: number): Promise<Descendant[]> {
    const startMs = performance.now();
    for (;;) {
      const living = this.listLiving();
      const elapsedMs = performance.now() - startMs;
      if (
        this.#isUnsure
          ? elapsedMs >= Math.max(limitMs, BECOMING_MS)
          : living.length === 0 || elapsedMs >= limitMs
      )
        return living;
      await delay(ROUND_MS);
    }
  }

  /** Ends all of it at once. */
  kill(): void {
    for (const { pid } of this.listLiving()) attempt(() => process.kill(pid, 'SIGKILL'));
  }

  /** Ends all of it, also what is started meanwhile; resolves with what could not be ended. */
  async end(limitMs: number): Promise<Descendant[]> {
    const startMs = performance.now();
    for (;;) {
      this.kill();
      const left = await this.waitForEnd(ROUND_MS);
      if (left.length === 0 || performance.now() - startMs >= limitMs) return left;
    }
  }
}

/** Of the process that starts trees: which one it is, whatever number it has. */
const ownName = (): string => {
  const { pid, startTicks } = readEntry(process.pid) ?? { pid: process.pid, startTicks: '' };
  return `${pid}-${startTicks}`;
};

/** A mark that says who started the tree. */
export const newMark = (): string => `${ownName()}-${randomUUID()}`;

/** Ends what a killed process of ours started, however often it changed its session: the outermost mark names the starter. */
export function endAbandoned(): void {
  for (const { pid } of readEntries(true)) {
    const [, starter, ticks] =
      new RegExp(`(?:^|\0)${MARK_VARIABLE}=(\\d+)-(\\d+)-`).exec(readEnvironment(pid)) ?? [];
    if (starter === undefined || readEntry(Number(starter))?.startTicks === ticks) continue;
    attempt(() => process.kill(pid, 'SIGKILL'));
  }
}

/** The environment of a tree's root. A tree may stand within another's. */
export function markedEnvironment(
  mark: string,
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const outer = environment[MARK_VARIABLE];
  return { ...environment, [MARK_VARIABLE]: outer ? `${outer}:${mark}` : mark };
}
