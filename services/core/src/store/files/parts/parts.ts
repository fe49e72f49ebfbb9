import type { Readable } from 'node:stream';
import type { Client } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Begun, PartHold, PartsPlace } from './place.ts';

/** A file that comes in parts. What it is called by: the same uploader begins it once. */
export interface Whole {
  /** SHA-256 of all of it. */
  readonly hash: string;
  /** Who signed that. */
  readonly address: string;
  readonly sizeBytes: number;
}

export interface PartsOptions {
  readonly place: PartsPlace;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Files of one uploader that are not complete. */
const PER_UPLOADER = 4;
/** The same of one client, who may sign as many uploaders. */
const PER_CLIENT = 8;
/** Of all of them, and their bytes; of that, what only exempt clients may have. */
const FILES = { total: 64, reserve: 8 } as const;
const BYTES = { total: 16 * 1024 ** 3, reserve: 2 * 1024 ** 3 } as const;
/** A file counts as what has come of it, and so many bytes more: who announces much has nothing of it. */
const ROOM_BYTES = 64 * 1024 ** 2;
/** One that nobody sends on is kept for so long. */
const KEPT_MS = 24 * 3_600_000;
/** Where there is no room, one of which less than this has come for so long makes some: nobody holds a place by beginning. */
const MOVED_BYTES = 1024 ** 2;
const RESTS_MS = 10 * 60_000;
/** Whatever wrote one may have another clock, and one that was set back leaves some in the future: these rest, too. */
const isLongerAgo = (ms: number, nowMs: number, atMostMs: number) => Math.abs(nowMs - ms) > atMostMs;
const RETRY_AFTER_SECONDS = 10;

/** Who sends a part. */
type Beginner = Pick<Client, 'key' | 'isExempt'>;
const NOBODY: Beginner = { key: '', isExempt: true };

/** With what its name says. */
interface Known extends Begun, Pick<Whole, 'address' | 'sizeBytes'> {}

/** What a file counts as. */
const countedBytes = ({ sizeBytes, receivedBytes }: Known) => Math.min(sizeBytes, receivedBytes + ROOM_BYTES);
const sumOf = (files: readonly Known[]) => files.reduce((sum, one) => sum + countedBytes(one), 0);
const isWithin = (files: readonly Known[], reserved: 0 | 1) =>
  files.length <= FILES.total - reserved * FILES.reserve &&
  sumOf(files) <= BYTES.total - reserved * BYTES.reserve;

/** A part that comes. */
interface Adding {
  readonly whole: Whole;
  /** How many bytes there were. */
  readonly before: number;
  readonly by: Beginner;
  readonly hold: PartHold | undefined;
}

/** Who adds to a file. */
interface Holder {
  /** Others have its room now. */
  isDropped: boolean;
}

const NAME = /^[0-9a-f]{64}-(0x[0-9a-f]{40})-([0-9]{1,16})$/;
const nameOf = ({ hash, address, sizeBytes }: Whole) => `${hash}-${address.toLowerCase()}-${sizeBytes}`;

/** Nothing where the name is not one of ours. */
function know(begun: Begun): Known[] {
  const [, address, size] = NAME.exec(begun.name) ?? [];
  return address === undefined ? [] : [{ ...begun, address, sizeBytes: Number(size) }];
}

const refuse = (code: 'RATE_LIMITED' | 'OVERLOADED', message: string) =>
  new AppError(code, message, { details: { retry_after: RETRY_AFTER_SECONDS } });

const dropped = () =>
  refuse('OVERLOADED', 'others needed the room of this file; send it again from its beginning');

/**
 * What has come of files that are sent in parts. It outlasts broken connections and this process. Nothing of it is believed before
 * the whole has its hash.
 */
export class Parts {
  readonly #options: PartsOptions;
  readonly #busy = new Map<string, Holder>();
  /** Who sends files, by the names of those of which this process saw something come. */
  readonly #sentBy = new Map<string, Beginner>();
  /** When the last MOVED_BYTES of a file had come, as far as this process looked, and how many bytes there were. */
  readonly #moved = new Map<string, { readonly ms: number; readonly bytes: number }>();
  /** How many bytes there were of a file when this process last added to it: where there are others now, another process does. */
  readonly #left = new Map<string, number>();

  constructor(options: PartsOptions) {
    this.#options = options;
  }

  /** How many bytes there are of a file; 0 where it was not begun. */
  received(whole: Whole): Promise<number> {
    return this.#options.place.received(nameOf(whole));
  }

  /** A file for its holder alone, in this process, to add to it and to put it together. Throws OVERLOADED where somebody holds it. */
  hold(whole: Whole): Disposable {
    const name = nameOf(whole);
    if (this.#busy.has(name))
      throw refuse('OVERLOADED', 'another part of this file is on its way, or the node puts it together');
    this.#busy.set(name, { isDropped: false });
    return { [Symbol.dispose]: () => void this.#busy.delete(name) };
  }

  /** Removes what nobody has sent on for a day, and of what rests the longest until the disk lacks no room. */
  async tidy(): Promise<void> {
    const resting = this.#listResting(await this.#dropOld());
    let lackBytes = this.#options.place.lackBytes?.() ?? 0;
    for (const one of resting) {
      if (lackBytes <= 0) return;
      await this.#drop([one]);
      lackBytes -= one.receivedBytes;
    }
  }

  /**
   * Adds what comes, if it begins where the file ends; otherwise nothing of it is read. What came before the source failed is kept. To be
   * called by who holds the file. Throws RATE_LIMITED, OVERLOADED, STORAGE_FULL, STORAGE_UNAVAILABLE, FILE_TOO_LARGE, and what the source failed with.
   * @returns how many bytes there are now
   */
  async append(whole: Whole, offset: number, source: Readable, by: Beginner = NOBODY): Promise<number> {
    const name = nameOf(whole);
    const before = await this.received(whole);
    // Nothing of it is read: it needs no room.
    if (before !== offset) return before;
    // One that does not fit is not begun, and no other one goes for it.
    using hold = this.#options.place.hold?.(whole.sizeBytes - before, whole.sizeBytes);
    await this.#makeRoom(whole, before, by);
    try {
      const received = await this.#options.place.write(
        name,
        before,
        this.#bounded(source, { whole, before, by, hold }),
      );
      if (this.#busy.get(name)?.isDropped) throw dropped();
      return received;
    } finally {
      this.#left.set(name, await this.received(whole).catch(() => before));
    }
  }

  /** All that has come. */
  read(whole: Whole): Readable {
    return this.#options.place.read(nameOf(whole));
  }

  remove(whole: Whole): Promise<void> {
    return this.#options.place.remove(nameOf(whole));
  }

  /** No more than was announced, and than there is room for. Who stops reading is not the end of the connection: it is still answered. */
  async *#bounded(source: Readable, { whole, before, by, hold }: Adding): AsyncGenerator<Buffer> {
    const { sizeBytes } = whole;
    const holder = this.#busy.get(nameOf(whole));
    let received = before;
    let counted = before;
    for await (const chunk of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      received += chunk.length;
      if (received > sizeBytes)
        throw new AppError('FILE_TOO_LARGE', `more came than the ${sizeBytes} bytes that were announced`);
      if (holder?.isDropped) throw dropped();
      if (received - counted > ROOM_BYTES) {
        await this.#makeRoom(whole, received, by);
        counted = received;
      }
      yield chunk;
      hold?.use(chunk.length);
    }
  }

  async #drop(gone: readonly Known[]): Promise<void> {
    for (const { name } of gone) {
      const holder = this.#busy.get(name);
      if (holder) holder.isDropped = true;
      await this.#options.place.remove(name);
    }
  }

  /** What is there now, without those that nobody has sent on for so long. */
  async #dropOld(): Promise<Known[]> {
    const nowMs = this.#options.now();
    const all = (await this.#options.place.list()).flatMap(know);
    const isOld = ({ name, writtenMs }: Known) =>
      isLongerAgo(writtenMs, nowMs, KEPT_MS) && !this.#busy.has(name);
    await this.#drop(all.filter(isOld));
    const kept = all.filter((one) => !isOld(one));
    this.#look(kept, nowMs);
    return kept;
  }

  /** Notes of which files something has come, and forgets those that are gone. */
  #look(kept: readonly Known[], nowMs: number): void {
    const names = new Set(kept.map(({ name }) => name));
    for (const known of [this.#sentBy, this.#moved, this.#left])
      for (const name of known.keys()) if (!names.has(name) && !this.#busy.has(name)) known.delete(name);
    for (const { name, receivedBytes: bytes, writtenMs } of kept) {
      const before = this.#moved.get(name);
      if (!before) this.#moved.set(name, { ms: writtenMs, bytes });
      else if (bytes < before.bytes || bytes - before.bytes >= MOVED_BYTES)
        this.#moved.set(name, { ms: nowMs, bytes });
    }
  }

  /** Whose a file is: its client's, or its uploader's where another process saw it come. */
  #keyOf({ name, address }: Known): string {
    return this.#sentBy.get(name)?.key ?? address;
  }

  /** Throws where a file may not begin, or not go on now. @param received how many bytes there are of it */
  async #makeRoom(whole: Whole, received: number, by: Beginner): Promise<void> {
    const name = nameOf(whole);
    const kept = await this.#dropOld();
    const others = kept.filter((one) => one.name !== name);
    if (others.length === kept.length && received === 0) this.#checkShare(whole, others, by);
    const address = whole.address.toLowerCase();
    const own = {
      ...{ name, address, sizeBytes: whole.sizeBytes },
      ...{ receivedBytes: received, writtenMs: this.#options.now() },
    };
    const full = refuse('OVERLOADED', 'the node has no room for more of a file in parts; try again later');
    if (whole.sizeBytes > BYTES.total) throw full;
    const left = new Set(others);
    for (;;) {
      const among = this.#listCrowd([...left], own, by);
      if (!among) break;
      const next = this.#findYielding(among, by);
      if (!next) throw full;
      left.delete(next);
      await this.#drop([next]);
    }
    if (!this.#sentBy.has(name)) this.#sentBy.set(name, by);
  }

  /** Throws where an uploader or a client has as many on their way as it may. */
  #checkShare({ address }: Whole, others: readonly Known[], { key, isExempt }: Beginner): void {
    const uploaded = others.filter((one) => one.address === address.toLowerCase());
    if (uploaded.length >= PER_UPLOADER)
      throw refuse(
        'RATE_LIMITED',
        `an address may have ${PER_UPLOADER} files on their way; send one to its end`,
      );
    const sent = [...this.#sentBy.values()].filter((by) => !by.isExempt && by.key === key).length;
    if (!isExempt && sent >= PER_CLIENT)
      throw refuse('RATE_LIMITED', `a client may have ${PER_CLIENT} files on their way; send one to its end`);
  }

  /** Those of which one has to make room for a file; undefined where there is room. */
  #listCrowd(others: readonly Known[], own: Known, { isExempt }: Beginner): readonly Known[] | undefined {
    if (!isWithin([...others, own], 0)) return others;
    const strangers = others.filter((one) => !this.#isOurs(one));
    return isExempt || isWithin([...strangers, own], 1) ? undefined : strangers;
  }

  #isOurs({ name }: Known): boolean {
    return this.#sentBy.get(name)?.isExempt ?? false;
  }

  /** Whether it comes here, or came here last: of any other, this process knows only when something came. */
  #isSeen({ name, receivedBytes }: Known): boolean {
    return this.#sentBy.has(name) && (this.#busy.has(name) || this.#left.get(name) === receivedBytes);
  }

  /** What is being put together has all its room already. */
  #isAble({ name, receivedBytes, sizeBytes }: Known): boolean {
    return receivedBytes < sizeBytes || !this.#busy.has(name);
  }

  /** Those of which next to nothing came lately, the longest rest first. */
  #listResting(files: readonly Known[]): Known[] {
    const nowMs = this.#options.now();
    const rests = (one: Known) =>
      (isLongerAgo(one.writtenMs, nowMs, RESTS_MS) && !this.#busy.has(one.name)) ||
      (this.#isSeen(one) && isLongerAgo(this.#moved.get(one.name)?.ms ?? nowMs, nowMs, RESTS_MS));
    return files
      .filter((one) => this.#isAble(one) && rests(one))
      .sort((one, other) => one.writtenMs - other.writtenMs);
  }

  /**
   * Which makes room: the one that rests for longest; where none does, and it is for a client that has none, of the client that has
   * most, if that has several, the slowest. Our own come as if they had none, and of theirs only what rests makes room; so it is with what
   * another process has, which may be one of ours.
   */
  #findYielding(files: readonly Known[], by: Beginner): Known | undefined {
    const [resting] = this.#listResting(files);
    if (resting) return resting;
    const nowMs = this.#options.now();
    const movedMs = ({ name }: Known) => this.#moved.get(name)?.ms ?? nowMs;
    const strangers = files.filter((one) => this.#isAble(one) && this.#isSeen(one) && !this.#isOurs(one));
    const held = Map.groupBy(strangers, (one) => this.#keyOf(one));
    if (!by.isExempt && held.has(by.key)) return undefined;
    const [most = []] = [...held.values()].sort((one, other) => other.length - one.length);
    return most.length < 2 ? undefined : most.sort((one, other) => movedMs(one) - movedMs(other))[0];
  }
}
