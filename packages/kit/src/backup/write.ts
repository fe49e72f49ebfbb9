import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { constants, createZstdCompress } from 'node:zlib';
import { sealWith } from './age.ts';
import { type BackupEnd, type BackupHead, END_PATH, HEAD_PATH, sumsPath } from './format.ts';
import { encodeEntry, encodePadding, TAR_END, type TarEntry } from './tar.ts';

export interface BackupMember extends TarEntry {
  content(): AsyncIterable<Uint8Array>;
}

export interface BackupPlan {
  readonly head: BackupHead;
  /** In the order in which they are to be restored. */
  readonly members: AsyncIterable<BackupMember>;
  /** Asked when all members are written. */
  readonly database: () => BackupEnd['database'];
  readonly passphrase?: string | undefined;
  /** What guessing the passphrase costs (age.ts), for tests that seal again and again; whoever keeps a backup leaves it out. */
  readonly workFactor?: number;
  readonly onMember?: ((member: TarEntry) => void) | undefined;
}

/** A list of sums is written when it is so long: nobody need hold the sums of millions of files. */
const SUMS_CHARS = 1024 * 1024;

/** A line as sha256sum writes and checks it, also for names that hold a line end. */
export function sumLine(sha256: string, path: string): string {
  const escaped = path.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return `${escaped === path ? '' : '\\'}${sha256}  ${escaped}\n`;
}

class TarWriter {
  readonly #sums = createHash('sha256');
  #lines = '';
  #lists = 0;
  members = 0;
  bytes = 0;

  get sumsSha256(): string {
    return this.#sums.copy().digest('hex');
  }

  async *add(member: BackupMember): AsyncGenerator<Uint8Array> {
    yield encodeEntry(member);
    if (member.kind === 'directory') return;
    const hash = createHash('sha256');
    for await (const part of member.content()) {
      hash.update(part);
      yield part;
    }
    yield encodePadding(member.sizeBytes);
    this.members++;
    this.bytes += member.sizeBytes;
    this.#lines += sumLine(hash.digest('hex'), member.path);
    if (this.#lines.length >= SUMS_CHARS) yield* this.flush();
  }

  *flush(): Generator<Uint8Array> {
    if (this.#lines === '') return;
    this.#sums.update(this.#lines);
    this.#lists++;
    yield* document(sumsPath(this.#lists), this.#lines);
    this.#lines = '';
  }
}

function* document(path: string, text: string): Generator<Uint8Array> {
  const bytes = Buffer.from(text);
  yield encodeEntry({ path, kind: 'file', mode: 0o600, sizeBytes: bytes.length, mtimeMs: Date.now() });
  yield bytes;
  yield encodePadding(bytes.length);
}

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

async function* writeTar({ head, members, database, onMember }: BackupPlan): AsyncGenerator<Uint8Array> {
  const tar = new TarWriter();
  const headBytes = Buffer.from(json(head));
  yield* tar.add({
    ...{ path: HEAD_PATH, kind: 'file', mode: 0o600, sizeBytes: headBytes.length, mtimeMs: Date.now() },
    content: async function* () {
      yield headBytes;
    },
  });
  for await (const member of members) {
    onMember?.(member);
    yield* tar.add(member);
  }
  yield* tar.flush();
  const end: BackupEnd = {
    finished_at: new Date().toISOString(),
    members: tar.members,
    bytes: tar.bytes,
    sums_sha256: tar.sumsSha256,
    database: database(),
  };
  yield* document(END_PATH, json(end));
  yield TAR_END;
}

/** Seals what is compressed; who takes no more of it lets go of all that it is made of. */
async function* sealed(
  passphrase: string,
  compressed: Readable,
  workFactor: number | undefined,
): AsyncGenerator<Buffer> {
  try {
    yield* sealWith(passphrase, compressed, workFactor);
  } finally {
    compressed.destroy();
  }
}

/** The bytes of a backup: a tar, compressed with zstd, sealed in the format of age where there is a passphrase. */
export function writeBackup(plan: BackupPlan): AsyncIterable<Uint8Array> {
  const params = { [constants.ZSTD_c_checksumFlag]: 1 };
  const compress = createZstdCompress({ params });
  // Whoever reads the end of the line hears of a failure.
  pipeline(Readable.from(writeTar(plan), { objectMode: false }), compress, () => {});
  return plan.passphrase === undefined ? compress : sealed(plan.passphrase, compress, plan.workFactor);
}
