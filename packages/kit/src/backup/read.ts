import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createZstdDecompress } from 'node:zlib';
import { AppError } from '@skerry/protocol/forms';
import { isSealed, openWith } from './age.ts';
import {
  type BackupEnd,
  type BackupHead,
  DOCUMENT_BYTES_MAX,
  END_PATH,
  HEAD_PATH,
  parseEnd,
  parseHead,
  SUMS_PATH,
} from './format.ts';
import { readTar, type TarMember } from './tar.ts';
import { sumLine } from './write.ts';

const damaged = (reason: string, cause?: unknown) =>
  new AppError('BACKUP_DAMAGED', `the backup is damaged: ${reason}`, { cause });

/** Enough to see what a file is. */
const START_BYTES = 32;
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

export interface OpenBackup {
  readonly head: BackupHead;
  /**
   * The files and directories, in order. The content of each is read whole or not at all before the next is asked for.
   * When there are no more, all sums were right. Throws BACKUP_DAMAGED.
   */
  readonly members: AsyncIterable<TarMember>;
  /** Once all members were read. */
  end(): BackupEnd;
}

/** @param passphrase asked for where the backup is sealed */
export async function openBackup(
  source: AsyncIterable<Uint8Array>,
  passphrase: () => Promise<string>,
): Promise<OpenBackup> {
  const tar = readTar(decompress(await unseal(source, passphrase)));
  const check = new Check();
  const first = await tar.next();
  if (first.done || first.value.path !== HEAD_PATH) throw damaged('it does not begin as a backup');
  const head = parseHead(await readDocument(first.value, check));
  return { head, members: readMembers(tar, check), end: () => check.end };
}

/** The sums of what was read, compared with those that were written. */
class Check {
  readonly #sums = createHash('sha256');
  #lines = '';
  #members = 0;
  #bytes = 0;
  #end: BackupEnd | undefined;

  get end(): BackupEnd {
    if (this.#end === undefined) throw damaged('its end is missing');
    return this.#end;
  }

  add(member: TarMember, sha256: string): void {
    this.#members++;
    this.#bytes += member.sizeBytes;
    this.#lines += sumLine(sha256, member.path);
    if (this.#lines.length > DOCUMENT_BYTES_MAX) throw damaged('a list of sums is missing');
  }

  compare(text: string): void {
    if (text !== this.#lines)
      throw damaged(`${differingPath(text, this.#lines)} has another SHA-256 than it had`);
    this.#sums.update(text);
    this.#lines = '';
  }

  finish(end: BackupEnd): void {
    const isWhole =
      this.#lines === '' &&
      end.members === this.#members &&
      end.bytes === this.#bytes &&
      end.sums_sha256 === this.#sums.digest('hex');
    if (!isWhole) throw damaged('some of its files are missing');
    this.#end = end;
  }
}

function differingPath(one: string, other: string): string {
  const lines = other.split('\n');
  const line = one.split('\n').find((each, at) => each !== lines[at]);
  return line?.slice(66) || 'a file';
}

async function* readMembers(tar: AsyncGenerator<TarMember>, check: Check): AsyncGenerator<TarMember> {
  let isOver = false;
  for await (const member of tar) {
    if (isOver) throw damaged('something follows its end');
    if (member.path === END_PATH) {
      check.finish(parseEnd(await readDocument(member)));
      isOver = true;
    } else if (SUMS_PATH.test(member.path)) check.compare(await readDocument(member));
    else if (member.kind === 'directory') yield member;
    else {
      const hash = createHash('sha256');
      const content = hashing(member.content, hash);
      yield { ...member, content };
      for await (const _ of content);
      check.add(member, hash.digest('hex'));
    }
  }
  if (!isOver) throw damaged('its end is missing');
}

async function* hashing(source: AsyncIterable<Buffer>, hash: ReturnType<typeof createHash>) {
  for await (const part of source) {
    hash.update(part);
    yield part;
  }
}

/** A member that is read as a whole. */
async function readDocument(member: TarMember, check?: Check): Promise<string> {
  if (member.sizeBytes > DOCUMENT_BYTES_MAX) throw damaged(`${member.path} is too long`);
  const bytes = await buffer(member.content);
  check?.add(member, createHash('sha256').update(bytes).digest('hex'));
  return bytes.toString('utf8');
}

/** What is below the seal, where there is one. */
async function unseal(
  source: AsyncIterable<Uint8Array>,
  passphrase: () => Promise<string>,
): Promise<AsyncIterable<Uint8Array>> {
  const iterator = source[Symbol.asyncIterator]();
  let start = Buffer.alloc(0);
  while (start.length < START_BYTES) {
    const { done, value } = await iterator.next();
    if (done) break;
    start = Buffer.concat([start, value]);
  }
  const whole = (async function* () {
    yield start;
    for (;;) {
      const { done, value } = await iterator.next();
      if (done) return;
      yield value;
    }
  })();
  if (isSealed(start)) return openWith(await passphrase(), whole);
  if (!start.subarray(0, ZSTD_MAGIC.length).equals(ZSTD_MAGIC))
    throw damaged('this is no file of skerry backup');
  return whole;
}

/** The decoder passes over in silence what follows the last frame: its end is compared with that of the source. */
async function* decompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const zstd = createZstdDecompress();
  let read = 0;
  let isOver = false;
  const counted = async function* () {
    for await (const part of source) {
      read += part.length;
      yield part;
    }
    isOver = true;
  };
  pipeline(Readable.from(counted(), { objectMode: false }), zstd, () => {});
  try {
    yield* zstd;
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw damaged('it cannot be decompressed', error);
  }
  // What the decoder has taken; it ends before its source does where that goes on.
  if (!isOver || zstd.bytesWritten !== read) throw damaged('something follows its end');
}
