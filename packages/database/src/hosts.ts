import { within } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import pg from 'pg';
import { cutOff } from './wire.ts';

/** Servers of one cluster that a connection string may name. */
const HOSTS_MAX = 16;
/** How long one of them may take to say whether it is the primary. */
const PROBE_TIMEOUT_MS = 5_000;
/** How long the others are waited for once one has said so. */
const SLOWER_MS = 500;
const DEFAULT_PORT = 5432;

interface Host {
  readonly host: string;
  readonly port: number;
}

/** How to reach a database: of one server, or of several of which one takes writes. */
export interface Reached extends pg.ClientConfig {
  readonly primary?: Primary | undefined;
}

const AUTHORITY = /^(?<scheme>postgres(?:ql)?:\/\/)(?<user>[^/]*@)?(?<hosts>[^/?]+)(?<rest>.*)$/s;
const HOST = /^(?<host>\[[0-9a-fA-F:.]+\]|[^:[\]@]+)(?::(?<port>[0-9]{1,5}))?$/;

function parseHost(text: string, index: number): Host {
  const { host, port } = HOST.exec(text)?.groups ?? {};
  if (host === undefined)
    // It may be part of a password that was not escaped, so it is not repeated.
    throw new AppError('INVALID_CONFIG', `host ${index + 1} of the database is not HOST or HOST:PORT`);
  return { host: host.replace(/^\[|\]$/g, ''), port: port === undefined ? DEFAULT_PORT : Number(port) };
}

/**
 * Reads a connection string, which may name several hosts as libpq's do: `postgresql://user@one:5432,two:5432/name`. Pure but for the
 * `Primary` that it makes. Throws INVALID_CONFIG, without the password.
 */
export function reachOf(url: string): Reached {
  const { scheme = '', user = '', hosts = '', rest = '' } = AUTHORITY.exec(url)?.groups ?? {};
  const texts = hosts.split(',');
  if (texts.length < 2) return { connectionString: url };
  if (texts.length > HOSTS_MAX)
    throw new AppError('INVALID_CONFIG', `the database has ${texts.length} hosts; ${HOSTS_MAX} are allowed`);
  const connection = { connectionString: `${scheme}${user}${texts[0]}${rest}` };
  return { ...connection, primary: new Primary(connection, texts.map(parseHost)) };
}

/** As a server says it that is asked to write. */
const READ_ONLY = '25006';

const nameOf = ({ host, port }: Host) => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** Grows with each promotion; of one length, so that texts compare as the numbers do. */
type Timeline = string;

/** The timeline, as SQL: at once right after a promotion. A standby refuses it. */
export const TIMELINE = 'substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)';

const ASK = `select case when pg_is_in_recovery() then null else ${TIMELINE} end as timeline`;

async function readTimeline(client: pg.Client): Promise<Timeline> {
  const { rows } = await client.query<{ timeline: Timeline | null }>(ASK);
  const timeline = rows[0]?.timeline ?? null;
  if (timeline === null) throw Object.assign(new Error('a standby'), { code: READ_ONLY });
  return timeline;
}

interface Found {
  readonly host: Host;
  readonly timeline: Timeline;
}

/** Which of several servers takes writes: found when it is needed, and sought again when it turns out to be another one. */
class Primary {
  readonly #connection: pg.ClientConfig;
  readonly #hosts: readonly Host[];
  #found: Promise<Found> | undefined;

  constructor(connection: pg.ClientConfig, hosts: readonly Host[]) {
    this.#connection = connection;
    this.#hosts = hosts;
  }

  /** The server that takes writes. Those who ask meanwhile share the search. Throws an AggregateError that says why each is not it. */
  async find(): Promise<Host> {
    this.#found ??= this.#search();
    const search = this.#found;
    search.catch(() => {
      if (this.#found === search) this.#found = undefined;
    });
    return (await search).host;
  }

  /** It did not answer, or does not take writes: it is sought again. */
  doubt(): void {
    this.#found = undefined;
  }

  /**
   * Looks whether another server was promoted after the one that was found. That one may answer still, and lose what it is told, when what
   * should have stopped it was killed.
   * @returns the server to leave
   */
  async findReplaced(): Promise<Host | undefined> {
    const search = this.#found;
    const found = await search?.catch(() => undefined);
    if (!found) return undefined;
    const others = this.#hosts.filter((host) => host !== found.host);
    const answers = await Promise.allSettled(others.map((host) => this.#probe(host)));
    const isReplaced = answers.some(
      (answer) => answer.status === 'fulfilled' && answer.value.timeline > found.timeline,
    );
    if (!isReplaced) return undefined;
    if (this.#found === search) this.doubt();
    return found.host;
  }

  async #search(): Promise<Found> {
    const found: Found[] = [];
    const probes = this.#hosts.map(async (host) => {
      found.push(await this.#probe(host));
    });
    try {
      await Promise.any(probes);
      // One that was replaced may answer before the one that was promoted after it.
      await within(SLOWER_MS, Promise.allSettled(probes), undefined);
      return found.toSorted((a, b) => (a.timeline < b.timeline ? 1 : -1))[0]!;
    } catch (error) {
      const { errors } = error as AggregateError;
      const reasons = this.#hosts.map(
        (host, index) => `${nameOf(host)}: ${(errors[index] as Error).message}`,
      );
      throw new AggregateError(errors, `no host of the database takes writes (${reasons.join('; ')})`);
    }
  }

  async #probe(host: Host): Promise<Found> {
    const client = new pg.Client({
      ...this.#connection,
      connectionTimeoutMillis: PROBE_TIMEOUT_MS,
      query_timeout: PROBE_TIMEOUT_MS,
    });
    lead(client, host);
    client.on('error', () => {});
    try {
      await client.connect();
      return { host, timeline: await readTimeline(client) };
    } finally {
      client.end().catch(() => {});
    }
  }
}

/** Before it connects: where to. */
export const lead = (client: pg.Client, { host, port }: Host) => Object.assign(client, { host, port });

type Connected = (error?: Error) => void;
type Call = (...args: unknown[]) => unknown;

/** A query object answers itself, and a callback is called. */
const isAnsweredOtherwise = ([statement, ...rest]: readonly unknown[]) =>
  typeof (statement as { submit?: unknown } | null)?.submit === 'function' ||
  rest.some((one) => typeof one === 'function');

/**
 * A query's answer as a promise. `pg` makes one, too, but has it settled by a function that it assigns to a property of the query: V8
 * takes such a function for a method and places it among old objects, where it keeps the query and all of its rows, though they are
 * done with, until the whole heap is collected.
 * @param query asks as `pg` does; for a function, the query object that it makes with a callback
 */
const askWithCallback = (query: Call, [statement, values]: readonly unknown[]): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const done = (error: unknown, result: unknown) => (error ? reject(error) : resolve(result));
    if (typeof statement === 'function') query(statement(done));
    else query(statement, values, done);
  });

/** A server that ends says so to whoever it can. */
const FATAL = ['FATAL', 'PANIC'];
/** The part of a server (its words may be translated) that says that a commit no longer waits for a standby, which may not have it. */
const STANDBY_WAIT = 'SyncRepWaitForLSN';
/** statement_completion_unknown */
const UNSURE = '40003';

/**
 * A client that leaves its server when that takes no writes any more or ends, and that connects, where there are several, to the one
 * that takes writes. A commit that somebody made stop waiting for its standby fails, since nobody knows whether it will last.
 */
export class PrimaryClient extends pg.Client {
  constructor(config?: string | Reached) {
    super(config);
    const primary = typeof config === 'object' ? config.primary : undefined;
    const query = this.query as Call;
    // An error that no query waits for would otherwise end the process; the next query reports it.
    this.on('error', () => {});
    let isUnsure = false;
    this.on('notice', ({ routine }) => {
      isUnsure ||= routine === STANDBY_WAIT;
    });
    const leave = () => {
      primary?.doubt();
      this.end().catch(() => {});
    };
    const note = (error: Error & { code?: unknown; severity?: unknown }): never => {
      // It was made where the answer was read; who asked says more.
      Error.captureStackTrace(error);
      if (error.code === READ_ONLY || FATAL.includes(String(error.severity))) leave();
      throw error;
    };
    const confirm = (result: unknown): unknown => {
      if (!isUnsure) return result;
      leave();
      throw Object.assign(new Error('a commit stopped waiting for its standby'), { code: UNSURE });
    };
    Object.assign(this, {
      ...(primary ? { connect: this.#connectTo(primary, leave) } : {}),
      query: (...args: unknown[]) =>
        isAnsweredOtherwise(args)
          ? query.apply(this, args)
          : askWithCallback(query.bind(this), args).then(confirm, note),
    });
  }

  #connectTo(primary: Primary, leave: () => void) {
    const connect = this.connect as Call;
    const connectThere = async (): Promise<void> => {
      lead(this, await primary.find());
      const timer = setTimeout(() => cutOff(this, 'the database did not let us in'), PROBE_TIMEOUT_MS);
      try {
        await connect.call(this);
        // The one that was found may have come back as a standby.
        await readTimeline(this);
      } catch (error) {
        leave();
        throw error;
      } finally {
        clearTimeout(timer);
      }
    };
    return (done?: Connected) => {
      const connecting = connectThere();
      if (!done) return connecting;
      connecting.then(() => done(), done);
      return undefined;
    };
  }
}
