import type { Readable } from 'node:stream';
import type { Client } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { Begun, PartsPlace } from './place.ts';

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
/** Of all of them, and the bytes that they may become together. */
const FILES_MAX = 64;
const BYTES_MAX = 16 * 1024 ** 3;
/** One that nobody sends on is kept for so long. */
const KEPT_MS = 24 * 3_600_000;
/** Where there is no room, one that rests for longer than this makes some: nobody holds a place by beginning. */
const RESTS_MS = 10 * 60_000;
/** Whatever wrote one may have another clock, and one that was set back leaves some in the future: these rest, too. */
const restsLonger = ({ writtenMs }: Begun, nowMs: number, atMostMs: number) =>
  Math.abs(nowMs - writtenMs) > atMostMs;
const RETRY_AFTER_SECONDS = 10;

/** Who sends a part. */
type Beginner = Pick<Client, 'key' | 'isExempt'>;
const NOBODY: Beginner = { key: '', isExempt: true };

/** With what its name says. */
interface Known extends Begun, Pick<Whole, 'address' | 'sizeBytes'> {}

const NAME = /^[0-9a-f]{64}-(0x[0-9a-f]{40})-([0-9]{1,16})$/;
const nameOf = ({ hash, address, sizeBytes }: Whole) => `${hash}-${address.toLowerCase()}-${sizeBytes}`;

/** Nothing where the name is not one of ours. */
function know(begun: Begun): Known[] {
  const [, address, size] = NAME.exec(begun.name) ?? [];
  return address === undefined ? [] : [{ ...begun, address, sizeBytes: Number(size) }];
}

const refuse = (code: 'RATE_LIMITED' | 'OVERLOADED', message: string) =>
  new AppError(code, message, { details: { retry_after: RETRY_AFTER_SECONDS } });

/** No more than was announced. Who stops reading is not the end of the connection: it is still answered. */
async function* bounded(source: Readable, { sizeBytes }: Whole, before: number): AsyncGenerator<Buffer> {
  let received = before;
  for await (const chunk of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    received += chunk.length;
    if (received > sizeBytes)
      throw new AppError('FILE_TOO_LARGE', `more came than the ${sizeBytes} bytes that were announced`);
    yield chunk;
  }
}

/**
 * What has come of files that are sent in parts. It outlasts broken connections and this process. Nothing of it is believed before
 * the whole has its hash.
 */
export class Parts {
  readonly #options: PartsOptions;
  readonly #busy = new Set<string>();
  /** Who began files, by the names of those that this process saw begin. */
  readonly #beganBy = new Map<string, string>();

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
    this.#busy.add(name);
    return { [Symbol.dispose]: () => void this.#busy.delete(name) };
  }

  /** Removes what nobody has sent on for a day. */
  async tidy(): Promise<void> {
    await this.#dropOld();
  }

  /**
   * Adds what comes, if it begins where the file ends; otherwise nothing of it is read. What came before the source failed is kept. To be
   * called by who holds the file. Throws RATE_LIMITED, OVERLOADED, STORAGE_FULL, STORAGE_UNAVAILABLE, FILE_TOO_LARGE, and what the source failed with.
   * @returns how many bytes there are now
   */
  async append(whole: Whole, offset: number, source: Readable, by: Beginner = NOBODY): Promise<number> {
    const name = nameOf(whole);
    await this.#makeRoom(whole, name, by);
    const before = await this.received(whole);
    return before === offset
      ? await this.#options.place.write(name, before, bounded(source, whole, before))
      : before;
  }

  /** All that has come. */
  read(whole: Whole): Readable {
    return this.#options.place.read(nameOf(whole));
  }

  remove(whole: Whole): Promise<void> {
    return this.#options.place.remove(nameOf(whole));
  }

  async #drop(dropped: readonly Known[]): Promise<void> {
    for (const { name } of dropped) await this.#options.place.remove(name);
  }

  /** Those that nobody holds, and has sent on for so long. */
  #listResting(all: readonly Known[], atMostMs: number): Known[] {
    const nowMs = this.#options.now();
    return all.filter((one) => restsLonger(one, nowMs, atMostMs) && !this.#busy.has(one.name));
  }

  /** @returns those that are left */
  async #dropOld(): Promise<Known[]> {
    const all = (await this.#options.place.list()).flatMap(know);
    const old = this.#listResting(all, KEPT_MS);
    await this.#drop(old);
    return all.filter((one) => !old.includes(one));
  }

  /** Throws where a file that was not begun yet may not begin. */
  async #makeRoom(whole: Whole, name: string, by: Beginner): Promise<void> {
    const kept = await this.#dropOld();
    if (kept.some((one) => one.name === name)) return;
    const own = kept.filter(({ address }) => address === whole.address.toLowerCase());
    if (own.length >= PER_UPLOADER)
      throw refuse(
        'RATE_LIMITED',
        `an address may have ${PER_UPLOADER} files on their way; send one to its end`,
      );
    this.#checkShare(kept, by);
    const resting = this.#listResting(kept, RESTS_MS).sort((one, other) => one.writtenMs - other.writtenMs);
    const left = new Set(kept);
    const isFull = () =>
      left.size >= FILES_MAX ||
      [...left].reduce((sum, one) => sum + one.sizeBytes, whole.sizeBytes) > BYTES_MAX;
    for (const one of resting) {
      if (!isFull()) break;
      left.delete(one);
      await this.#drop([one]);
    }
    if (isFull())
      throw refuse('OVERLOADED', 'the node has no room for another file in parts; try again later');
    if (!by.isExempt) this.#beganBy.set(name, by.key);
  }

  /** Throws where a client has as many on their way as it may. */
  #checkShare(kept: readonly Known[], by: Beginner): void {
    const names = new Set(kept.map(({ name }) => name));
    for (const name of this.#beganBy.keys())
      if (!names.has(name) && !this.#busy.has(name)) this.#beganBy.delete(name);
    const own = [...this.#beganBy.values()].filter((key) => key === by.key).length;
    if (!by.isExempt && own >= PER_CLIENT)
      throw refuse('RATE_LIMITED', `a client may have ${PER_CLIENT} files on their way; send one to its end`);
  }
}
