import { join } from 'node:path';
import { type Logger, readTextIfAny, systemCodeOf, within } from '@skerry/kit';
import { AppError } from '@skerry/protocol';

/** Names a directory of files: the database of the node knows what it holds. */
export const ID_FILE = 'store-id';

/** While the disk hangs, one look into it waits for so long, to see what of it can still be read. */
const READ_MS = 5_000;
/** Each that waits has one of the few threads of the process that wait for disks. */
const READS_WHILE_HANGING = 2;
/** What the process lacks, not the disk. */
export const LACKS: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);

const LATE = Symbol('late');

export interface FilesDiskOptions {
  readonly directory: string;
  /** What ID_FILE holds there, if it is the directory that this node's database goes with; undefined where the database does not say. */
  readonly id: string | undefined;
  /** Then asked, again and again until it is known, what it has to hold; undefined where nothing of what the database knows is there. */
  readonly recognize?: () => Promise<string | undefined>;
  readonly log: Logger;
}

/** What is found in the place of the node's files. Pure. */
function describeOther(directory: string, found: string | undefined): string {
  return found === undefined
    ? `${directory} has no ${ID_FILE}, which the directory of this node's files has: is their disk mounted?`
    : `${directory} is not the directory of this node's files: its ${ID_FILE} is another one; is their disk mounted?`;
}

/** Nothing says that it is the node's. Pure. */
const describeUnknown = (directory: string) =>
  `${directory} has none of the files that the database of this node knows: is their disk mounted?`;

/**
 * Whether the disk of the files is there, and answers. Where it is not mounted, an empty directory is in its place: all files would
 * look lost, and be fetched again onto another disk.
 */
export class FilesDisk {
  readonly #options: FilesDiskOptions;
  readonly #waiting = new Set<() => void>();
  #id: string | undefined;
  #absence: string | undefined;
  #hang: string | undefined;
  #reads = 0;

  constructor(options: FilesDiskOptions) {
    this.#options = options;
    this.#id = options.id;
  }

  /** What ID_FILE has to hold there; undefined while that is not known. */
  get id(): string | undefined {
    return this.#id;
  }

  get directory(): string {
    return this.#options.directory;
  }

  /** Why files can be neither read nor written, in words; undefined where nothing is known against it. */
  get absence(): string | undefined {
    return this.#absence;
  }

  /** Which write does not return, in words; undefined where all do. */
  get hang(): string | undefined {
    return this.#hang;
  }

  /** Told by whoever tries to write. Those who wait for the disk are refused when it begins to hang. */
  set hang(reason: string | undefined) {
    this.#hang = reason;
    if (reason !== undefined) for (const give of this.#waiting) give();
  }

  /** Finds out whether it is the directory of this node's files. */
  async look(): Promise<void> {
    const { directory, recognize, log } = this.#options;
    const had = this.#absence;
    try {
      this.#id ??= await recognize?.();
      const found = (await readTextIfAny(join(directory, ID_FILE)))?.trim();
      if (this.#id === undefined) this.#absence = describeUnknown(directory);
      else this.#absence = found === this.#id ? undefined : describeOther(directory, found);
    } catch (error) {
      const code = systemCodeOf(error) ?? 'unknown error';
      if (!LACKS.has(code)) this.#absence = `${code} at ${join(directory, ID_FILE)}`;
    }
    if (this.#absence !== undefined && this.#absence !== had)
      log.error(
        { reason: this.#absence },
        'the files are not here: none is served, taken or fetched; messages continue',
      );
    if (this.#absence === undefined && had !== undefined) log.info('the files are here again');
  }

  /** Throws STORAGE_UNAVAILABLE where it is another directory. */
  async require(): Promise<void> {
    await this.look();
    if (this.#absence !== undefined)
      throw new AppError('STORAGE_UNAVAILABLE', 'the files of this node are not at hand; try again later');
  }

  /**
   * What writes, for as long as writes return.
   * @param undo what is done with the result of one that returns after all, when nobody waits for it
   * @throws AppError STORAGE_UNAVAILABLE once they do not
   */
  async write<T>(work: () => Promise<T>, undo: (late: T) => unknown = () => {}): Promise<T> {
    if (this.#hang !== undefined) throw hanging();
    const given = Promise.withResolvers<typeof LATE>();
    const give = () => given.resolve(LATE);
    this.#waiting.add(give);
    const running = work();
    try {
      const done = await Promise.race([running, given.promise]);
      if (done !== LATE) return done;
    } finally {
      this.#waiting.delete(give);
    }
    running.then(undo).catch(() => {});
    throw hanging();
  }

  /** What reads. A disk whose writes do not return may still know what was read before. Throws STORAGE_UNAVAILABLE where it does not. */
  async read<T>(work: () => Promise<T>, undo: (late: T) => unknown = () => {}): Promise<T> {
    const counted = () => {
      this.#reads++;
      return work().finally(() => this.#reads--);
    };
    if (this.#hang === undefined) return this.write(counted, undo);
    if (this.#reads >= READS_WHILE_HANGING) throw hanging();
    const running = counted();
    const done = await within(READ_MS, running, LATE);
    if (done !== LATE) return done;
    running.then(undo).catch(() => {});
    throw hanging();
  }
}

const hanging = () =>
  new AppError('STORAGE_UNAVAILABLE', 'the disk of this node does not answer; try again later');
