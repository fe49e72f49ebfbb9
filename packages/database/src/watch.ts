import type { Logger } from '@skerry/kit';
import pg from 'pg';
import { APPLICATION_NAME, Holders } from './holders.ts';
import { lead, type Reached } from './hosts.ts';
import { decideFate, type Sighting, sight, type Word } from './silence.ts';
import { cutOff, processIdOf, readState } from './wire.ts';

/** Between two looks at the connections. A look costs nothing where nobody is silent. */
const LOOK_MS = 1_000;
/** Between two looks whether another server has been promoted. */
const PROMOTED_LOOK_MS = 2_000;
/** A server that does not let us in and answer within this is not there. */
const ANSWER_TIMEOUT_MS = 3_000;
/** In that time this process looks up so often, or it stood still itself: then its silence is not the server's. */
const TURNS = 8;
const TURNS_MIN = 4;

interface Activity {
  readonly own: number;
  readonly pid: number | null;
  readonly is_active: boolean;
  readonly waits_for_standby: boolean;
  readonly waits_for_lock: boolean;
}

const ASK = `
  select pg_backend_pid() as own, pid, state = 'active' as is_active, coalesce(wait_event = 'SyncRep', false) as waits_for_standby,
    coalesce(wait_event_type = 'Lock', false) as waits_for_lock
  from (select 1) as always left join pg_stat_activity on pid = any($1::int[])`;

/**
 * Ends connections of a pool whose server is frozen, gone without a word, or no longer the one that ran the query. TCP notices none of
 * these for minutes, and a statement's own time limit is the server's to keep. A slow query is told from a lost one by asking the server
 * over another connection whether it works on it. Where it waits for a lock, whoever has that may be the one that is frozen.
 */
export class Watch implements Disposable {
  readonly #connection: Reached;
  readonly #log: Logger;
  readonly #seen = new Map<pg.Client, Sighting>();
  readonly #holders = new Holders();
  readonly #timers: readonly NodeJS.Timeout[];
  #asking = false;
  #seeking = false;
  /** Since the server fell silent, until somebody reaches one again. */
  #isAway = false;

  constructor(connection: Reached, pool: pg.Pool, log: Logger) {
    this.#connection = connection;
    this.#log = log;
    pool.on('connect', (client) => {
      this.#seen.set(client, sight(undefined, STILL, 0));
      if (this.#isAway) log.info({ host: client.host, port: client.port }, 'the database answers again');
      this.#isAway = false;
    });
    pool.on('remove', (client) => this.#seen.delete(client));
    this.#timers = [
      setInterval(() => void this.#look(), LOOK_MS).unref(),
      ...(connection.primary ? [setInterval(() => void this.#leave(), PROMOTED_LOOK_MS).unref()] : []),
    ];
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  async #look(): Promise<void> {
    for (const [client, before] of this.#seen)
      this.#seen.set(client, sight(before, readState(client), performance.now()));
    const silent = [...this.#seen].filter(([, { isSilent }]) => isSilent).map(([client]) => client);
    if (silent.length === 0 || this.#asking) return;
    this.#asking = true;
    try {
      // Those that reach one server are asked for together.
      for (const group of Map.groupBy(silent, ({ host, port }) => `${host}:${port}`).values())
        await this.#ask(group);
    } finally {
      this.#asking = false;
    }
  }

  /** Leaves a server that was replaced while it goes on. */
  async #leave(): Promise<void> {
    if (this.#seeking) return;
    this.#seeking = true;
    try {
      const replaced = await this.#connection.primary?.findReplaced();
      if (!replaced) return;
      for (const [client] of this.#seen)
        if (client.host === replaced.host && client.port === replaced.port)
          this.#end(client, 'another server of the database has been promoted');
    } finally {
      this.#seeking = false;
    }
  }

  async #ask(clients: readonly pg.Client[]): Promise<void> {
    const words = await this.#askServer(clients);
    let isGone = false;
    for (const client of clients) {
      const before = this.#seen.get(client);
      if (!before) continue;
      // Its answer may have come meanwhile.
      const now = sight(before, readState(client), performance.now());
      const { sighting, why } = decideFate(now, words(client), performance.now());
      this.#seen.set(client, sighting);
      if (why === undefined) continue;
      isGone ||= words(client) === 'silent';
      this.#end(client, why);
    }
    if (isGone) this.#noteGone(clients[0]!);
  }

  #noteGone(client: pg.Client): void {
    const { host, port } = client;
    if (!this.#isAway) this.#log.error({ host, port }, 'the database does not answer');
    this.#isAway = true;
    this.#endIdle(client);
  }

  /** Those that wait for their next query would let it wait in vain. */
  #endIdle({ host, port }: pg.Client): void {
    for (const [client] of this.#seen)
      if (client.host === host && client.port === port && !readState(client).isBusy)
        this.#end(client, 'another connection to this server was given up');
  }

  /** What the server says of each connection. */
  async #askServer(clients: readonly pg.Client[]): Promise<(client: pg.Client) => Word> {
    const { primary: _, ...connection } = this.#connection;
    const client = new pg.Client({
      ...connection,
      connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      application_name: APPLICATION_NAME,
    });
    const { host, port } = clients[0]!;
    lead(client, { host, port });
    client.on('error', () => {});
    let turns = 0;
    const counting = setInterval(() => turns++, ANSWER_TIMEOUT_MS / TURNS);
    try {
      await client.connect();
      const { rows } = await client.query<Activity>(ASK, [clients.map(processIdOf)]);
      // A pooler tells numbers of its own making, so that nothing can be known of one connection.
      const isPooled = rows[0]?.own !== processIdOf(client);
      if (isPooled || rows.some((row) => row.waits_for_lock)) await this.#endHolders(client);
      if (isPooled) return () => 'works';
      return (one) => {
        const row = rows.find(({ pid }) => pid === processIdOf(one));
        if (row?.waits_for_standby) return 'waits for a standby';
        return row?.is_active ? 'works' : 'knows nothing of it';
      };
    } catch (error) {
      // One that says why it lets nobody in is there, and so may be one whose answer this process was too busy to read.
      const isLate = error instanceof Error && /timeout/.test(error.message) && turns < TURNS_MIN;
      return () => (isLate || 'severity' in (error as object) ? 'works' : 'silent');
    } finally {
      clearInterval(counting);
      client.end().catch(() => {});
    }
  }

  /** Lets those go on who wait for a program that is frozen. */
  async #endHolders(client: pg.Client): Promise<void> {
    try {
      for (const reason of await this.#holders.look(client))
        this.#log.warn({ reason }, 'a transaction of another process was ended');
    } catch (error) {
      this.#log.warn({ err: error }, 'it is not known who holds up the others');
    }
  }

  #end(client: pg.Client, why: string): void {
    this.#connection.primary?.doubt();
    this.#log.warn(
      { host: client.host, port: client.port, reason: why },
      'a database connection is given up',
    );
    this.#seen.delete(client);
    cutOff(client, why);
  }
}

const STILL = { isBusy: false, bytesRead: 0 };
