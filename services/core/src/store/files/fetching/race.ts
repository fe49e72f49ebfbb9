/** Where less than so much of a file came in so long, another source is asked for it, too (as of transfers: peers/sync/transfer.ts). */
const TURN_MS = 120_000;
const TURN_BYTES = 64 * 1024 * 1024;
/** Sources that send one file at the same time. */
const RIVALS_MAX = 2;

/** One source that is asked for a file. */
export interface Runner {
  /** Whether it brought the file. Never rejects. */
  readonly ended: Promise<boolean>;
  /** Bytes that came so far. */
  readonly bytes: () => number;
  /** Has it end soon. */
  end(): void;
}

class Running {
  readonly runner: Runner;
  readonly ended: Promise<Running>;
  isHere = false;
  /** Bytes that had come when the turn began. */
  before = 0;

  constructor(runner: Runner) {
    this.runner = runner;
    this.ended = runner.ended.then((isHere) => {
      this.isHere = isHere;
      return this;
    });
  }
}

/** The first of them that ends, or undefined where a turn is over before. */
async function waitFor(all: readonly Running[]): Promise<Running | undefined> {
  const over = Promise.withResolvers<undefined>();
  const timer = setInterval(() => over.resolve(undefined), TURN_MS).unref();
  try {
    return await Promise.race([over.promise, ...all.map(({ ended }) => ended)]);
  } finally {
    clearInterval(timer);
  }
}

/**
 * Asks one source after another for a file until one brings it. One that sends slowly goes on, and the next is asked beside it; of two, the
 * one that brought less in a turn makes way for a third. So none holds the file up that others have, and what came slowly is not lost.
 * @param next begins the next one; undefined where none can be asked now. `isSlow`: those that are asked send slowly
 */
export async function race(next: (isSlow: boolean) => Runner | undefined): Promise<boolean> {
  const all: Running[] = [];
  const drop = (one: Running) => all.splice(all.indexOf(one), 1);
  const add = (isSlow: boolean): boolean => {
    const runner = next(isSlow);
    if (!runner) return false;
    all.push(new Running(runner));
    return true;
  };
  let isSlow = false;
  add(isSlow);
  while (all.length > 0) {
    for (const one of all) one.before = one.runner.bytes();
    const ended = await waitFor(all);
    if (ended?.isHere) break;
    if (ended) {
      drop(ended);
      add(isSlow);
      continue;
    }
    const came = all.map(({ runner, before }) => runner.bytes() - before);
    isSlow = came.every((bytes) => bytes < TURN_BYTES);
    const slower = came.length < RIVALS_MAX ? undefined : all[came.indexOf(Math.min(...came))];
    if (!isSlow || !add(isSlow) || !slower) continue;
    slower.runner.end();
    if ((await slower.ended).isHere) break;
    drop(slower);
  }
  for (const { runner } of all) runner.end();
  const ended = await Promise.all(all.map((one) => one.ended));
  return ended.some(({ isHere }) => isHere);
}
