import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** sun_path holds 108 bytes, the last of them NUL (unix(7)). */
export const SOCKET_PATH_BYTES_MAX = 107;

/** Where a cluster goes when its own directory cannot be reached by the user that PostgreSQL has to run as. */
export const SYSTEM_DIR = '/var/lib/skerry';

/** The name PostgreSQL gives its socket; the number is a part of a file name, no TCP port is opened. */
export const SOCKET_PORT = 5432;

const SHORT_SOCKET_ROOT = '/tmp';

/**
 * The directories of one cluster. `home` is the data directory itself, or a directory below SYSTEM_DIR.
 * `cluster` is what PostgreSQL calls PGDATA, `run` holds the socket, `lib` the links to shared libraries.
 */
export interface Layout {
  readonly home: string;
  readonly cluster: string;
  readonly run: string;
  readonly lib: string;
}

export function layoutOf(home: string): Layout {
  return { home, cluster: join(home, 'cluster'), run: join(home, 'run'), lib: join(home, 'lib') };
}

/** A directory below `systemDir` that belongs to this data directory and to no other. */
export function systemHomeOf(dataDir: string, systemDir: string = SYSTEM_DIR): string {
  return join(systemDir, `postgres-${shortHash(dataDir)}`);
}

/** A directory for the socket whose path is short wherever the data directory lies. */
export function shortSocketDirOf(home: string, uid: number): string {
  return join(SHORT_SOCKET_ROOT, `skerry-${shortHash(`${uid}\n${home}`)}`);
}

export function fitsSocket(directory: string, port: number = SOCKET_PORT): boolean {
  return Buffer.byteLength(join(directory, `.s.PGSQL.${port}`)) <= SOCKET_PATH_BYTES_MAX;
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
