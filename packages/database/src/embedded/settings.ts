/** Memory that the server's processes share; the pages that are not used cost nothing. */
const SHARED_BUFFERS_MIB = { min: 32, max: 128 };
const SHARED_BUFFERS_PART_OF_MEMORY = 32;
/** Of a disk whose size is not known. */
const LOG_MIB = 512;
/** PostgreSQL's own default. */
const MIN_LOG_MIB = 80;

export type ServerSettings = Readonly<Record<string, string>>;

/**
 * The server's settings for a machine with this much memory, and a disk on which the log may have `logMib` (disk-sizes.ts).
 * They are given on the command line at every start, so
 * that nothing depends on a file written by an older release.
 */
export function decideSettings(memoryMib: number, socketDir: string, logMib = LOG_MIB): ServerSettings {
  const { min, max } = SHARED_BUFFERS_MIB;
  const sharedBuffersMib = Math.min(
    max,
    Math.max(min, Math.floor(memoryMib / SHARED_BUFFERS_PART_OF_MEMORY)),
  );
  return {
    listen_addresses: '',
    unix_socket_directories: quoteListItem(socketDir),
    unix_socket_permissions: '0700',
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    shared_buffers: `${sharedBuffersMib}MB`,
    effective_cache_size: `${Math.max(64, Math.floor(memoryMib / 4))}MB`,
    max_connections: '40',
    max_wal_size: `${logMib}MB`,
    // Log that is let go is given back to the disk instead of being kept for later.
    min_wal_size: `${Math.min(MIN_LOG_MIB, logMib)}MB`,
    // Files in the cluster instead of /dev/shm, which is small in containers and keeps what a kill -9 left.
    dynamic_shared_memory_type: 'mmap',
    // Three processes fewer; the page cache serves a database of this size.
    io_method: 'sync',
    max_logical_replication_workers: '0',
    max_wal_senders: '0',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    logging_collector: 'off',
    log_destination: 'stderr',
    log_line_prefix: '',
    // Statements hold what users sent; an error reaches our own log through the client.
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
  };
}

export function argumentsOf(settings: ServerSettings): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** An item of a comma-separated setting that keeps its spaces and commas. */
function quoteListItem(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
