import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing } from '@skerry/kit';
import pg from 'pg';
import type { OpenCluster } from './running.ts';

/** A file of a cluster, with a path below it; `content` gives exactly `sizeBytes`. */
export interface ClusterFile {
  readonly path: string;
  readonly kind: 'file' | 'directory';
  readonly mode: number;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  content(): AsyncIterable<Uint8Array>;
}

const READ_BYTES = 1024 * 1024;
const LABEL = 'skerry backup';

/** What PostgreSQL makes anew, or what must not be there after a restore (its documentation, "Making a Base Backup"). */
const LEFT_OUT =
  /^(postmaster\.(pid|opts)|pg_internal\.init.*|pgsql_tmp.*|backup_label(\.old)?|tablespace_map(\.old)?|backup_manifest|.*\.tmp)$/;
/** Directories of which only the names matter. */
const EMPTIED = new Set([
  'pg_dynshmem',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
  'pg_wal/archive_status',
  'pg_wal/summaries',
]);
const WAL_DIRECTORY = 'pg_wal';
const WAL_SEGMENT = /^[0-9A-F]{24}$/;
/** Copied last: what it says is about what was copied before. */
const CONTROL_FILE = 'global/pg_control';

/**
 * Every file of a cluster that a server works on, as one consistent copy: what was committed when `settle` was called is in
 * it. Only SQL is used. A slot that ends with the connection keeps the write-ahead log of the meantime.
 *
 * @param settle called when all data files were read, before the copy's end is fixed
 */
export async function* readCluster(
  { connection, directory }: Pick<OpenCluster, 'connection' | 'directory'>,
  settle: () => Promise<void> = async () => {},
): AsyncGenerator<ClusterFile> {
  const client = new pg.Client({ ...connection, ssl: false, application_name: 'skerry-backup' });
  // The next query reports it.
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('set statement_timeout = 0; set idle_session_timeout = 0');
    // Ahead of the checkpoint that the copy begins with, so that none of the log after it is given back.
    await client.query('select pg_create_physical_replication_slot($1, true, true)', [
      `skerry_backup_${process.pid}_${Date.now()}`,
    ]);
    await client.query('select pg_backup_start($1, true)', [LABEL]);
    yield* walk(directory, '');
    yield* fileAt(directory, CONTROL_FILE);
    await settle();
    const { rows } = await client.query<{ label: string; last: string }>(
      'select labelfile as label, pg_walfile_name(lsn) as last from pg_backup_stop(false)',
    );
    const { label, last } = rows[0]!;
    yield textFile('backup_label', label);
    const first = /\(file ([0-9A-F]{24})\)/.exec(label)?.[1] ?? '';
    yield* readLog(directory, first, last);
  } finally {
    await client.end().catch(() => {});
  }
}

/** The segments of the log from the copy's beginning to its end, and what tells timelines apart. */
async function* readLog(directory: string, first: string, last: string): AsyncGenerator<ClusterFile> {
  for (const name of (await readdir(join(directory, WAL_DIRECTORY))).sort()) {
    const isNeeded = WAL_SEGMENT.test(name) ? name >= first && name <= last : name.endsWith('.history');
    if (isNeeded) yield* fileAt(directory, `${WAL_DIRECTORY}/${name}`);
  }
}

/** All below a directory but the log and the control file. A file that is dropped meanwhile is left out: the log says so. */
async function* walk(root: string, below: string): AsyncGenerator<ClusterFile> {
  const entries = await readdir(join(root, below), { withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (LEFT_OUT.test(entry.name) || path === CONTROL_FILE) continue;
    if (entry.isDirectory()) {
      yield* directoryAt(root, path);
      if (!EMPTIED.has(path)) yield* walk(root, path);
    } else if (entry.isFile() && below !== WAL_DIRECTORY) yield* fileAt(root, path);
  }
}

async function* directoryAt(root: string, path: string): AsyncGenerator<ClusterFile> {
  const found = await stat(join(root, path)).catch(() => undefined);
  if (!found?.isDirectory()) return;
  const { mode, mtimeMs } = found;
  yield {
    path,
    kind: 'directory',
    mode: mode & 0o777,
    sizeBytes: 0,
    mtimeMs,
    content: async function* () {},
  };
}

async function* fileAt(root: string, path: string): AsyncGenerator<ClusterFile> {
  const found = await stat(join(root, path)).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (found === undefined) return;
  const { mode, size, mtimeMs } = found;
  const content = () => readExactly(join(root, path), size);
  yield { path, kind: 'file', mode: mode & 0o777, sizeBytes: size, mtimeMs, content };
}

function textFile(path: string, text: string): ClusterFile {
  const bytes = Buffer.from(text);
  const content = async function* () {
    yield bytes;
  };
  return { path, kind: 'file', mode: 0o600, sizeBytes: bytes.length, mtimeMs: Date.now(), content };
}

/**
 * So many bytes of a file that others write: what it grew by belongs to the log, and so does what was cut off, in whose
 * place zeros stand.
 */
async function* readExactly(path: string, sizeBytes: number): AsyncGenerator<Uint8Array> {
  let left = sizeBytes;
  const file = await open(path, 'r').catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  try {
    while (file !== undefined && left > 0) {
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, left));
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      if (bytesRead === 0) break;
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file?.close();
  }
  for (; left > 0; left -= READ_BYTES) yield Buffer.alloc(Math.min(READ_BYTES, left));
}
