import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { prepared } from '@skerry/database';
import { Failures, type Logger, pause } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { type Kysely, sql } from 'kysely';
import type { Schema } from '../../store/schema.ts';
import { outgrownBy } from '../../store/schema-version.ts';
import { LINEAGE } from '../../store/write-lock.ts';
import { KEY_FILES } from '../key-files.ts';
import { type Later, Lease, takeLeases } from './lease.ts';
import { adviseOnRoles, type Filled, LED_ROLES, type LedRole, type Role } from './roles.ts';

/** How often a process says that it lives. */
const BEAT_MS = 1_000;
/** A process that has not said so for this long is gone. */
const LIVES_SECONDS = 10;
/** Rows of those that are gone so long are deleted. */
const KEPT_SECONDS = 3_600;
/** A process whose predecessor was killed waits for that to be gone. */
const PATIENCE_MS = (LIVES_SECONDS + 2) * 1_000;
const LOOK_MS = 250;
const FAILED_REST_MAX_MS = 2_000;

/** What all processes on one database have in common: by its name, a fingerprint that gives nothing away. */
export type Identity = Readonly<Record<string, string>>;

export interface MemberOptions {
  readonly db: Kysely<Schema>;
  readonly roles: readonly Role[];
  readonly identity: Identity;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Nobody else can use the database: whatever it says of others is of processes that were killed. */
  readonly isAlone?: boolean;
  /** How long others with another identity may take to be gone, in milliseconds. */
  readonly patienceMs?: number;
  readonly later?: Later;
  /** Told when a newer release has migrated the database. */
  readonly outgrown?: (why: AppError) => void;
}

interface Other {
  readonly host: string;
  readonly pid: number;
  readonly identity: Identity;
}

const lives = sql`make_interval(secs => ${sql.lit(LIVES_SECONDS)})`;
/** One that was seen much later than now was seen by a clock that was set back since. */
const living = sql<boolean>`seen_at between clock_timestamp() - ${lives} and clock_timestamp() + ${lives}`;

/** Names of what two have in common only by name. Pure. */
export const differences = (one: Identity, other: Identity): string[] =>
  Object.keys(one).filter((name) => other[name] !== undefined && other[name] !== one[name]);

/** This process among those of the node on one database: what it does, whether it leads, and who else lives. */
export class Member {
  readonly id = randomUUID();
  readonly #options: MemberOptions;
  readonly #leases: ReadonlyMap<Role, Lease>;
  /** Of the database, when it was asked last. */
  #timeline: string | undefined;
  #filled: Filled = { processes: [], led: new Set() };

  private constructor(options: MemberOptions) {
    this.#options = options;
    const led = LED_ROLES.filter((role) => options.roles.includes(role));
    const { db, isAlone, later } = options;
    this.#leases = new Map(
      led.map((role) => [role, new Lease({ db, name: role, holder: this.id, isAlone, later })]),
    );
  }

  /**
   * Throws INVALID_CONFIG where another process that lives has other keys, or its files elsewhere: what one of them
   * keeps the other could not read.
   */
  static async join(options: MemberOptions): Promise<Member> {
    const member = new Member(options);
    const { patienceMs = PATIENCE_MS, signal } = options;
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const other = await member.#enter();
      if (!other) break;
      if (performance.now() > deadline) throw unlike(options.identity, other);
      await pause(LOOK_MS, signal);
      signal.throwIfAborted();
    }
    await member.beat();
    return member;
  }

  /** @returns one that this process cannot work beside */
  #enter(): Promise<Other | undefined> {
    const { db, roles, identity, isAlone = false } = this.#options;
    return db.transaction().execute(async (trx) => {
      // Of several that start at the same moment the first says what holds.
      await sql`lock table processes in share row exclusive mode`.execute(trx);
      if (isAlone) {
        await trx.deleteFrom('processes').execute();
        await trx.deleteFrom('leases').execute();
      }
      const others = await trx
        .selectFrom('processes')
        .select(['host', 'pid', 'identity'])
        .where(living)
        .execute();
      const unlike = others.find((other) => differences(identity, other.identity).length > 0);
      if (unlike) return unlike;
      await trx
        .insertInto('processes')
        .values({
          id: this.id,
          host: hostname(),
          pid: process.pid,
          roles: [...roles],
          identity: JSON.stringify(identity),
        })
        .execute();
      return undefined;
    });
  }

  /**
   * Says that this process lives, takes or keeps what it may lead, and learns who else lives, whether newer code has come, and whether
   * another server has: in one statement, since every process asks every second, whatever else there is to do.
   */
  async beat(): Promise<void> {
    const { db, roles, identity, outgrown = () => {} } = this.#options;
    const asked = [...this.#leases].filter(([, lease]) => !lease.rests);
    const names = asked.map(([name]) => name);
    const askedMs = performance.now();
    const { rows } = await sql<{
      version: number;
      timeline: string;
      taken: string[] | null;
      led: string[] | null;
      others: { roles: string[] }[] | null;
    }>`${prepared()}
      with here as (
        insert into processes (id, host, pid, roles, identity)
        values (${this.id}, ${hostname()}, ${process.pid}, ${[...roles]}, ${JSON.stringify(identity)})
        on conflict (id) do update set seen_at = clock_timestamp()),
      taken as (${takeLeases(names, this.id)})
      select (select max(version) from schema_migrations) as version, ${sql.raw(LINEAGE)} as timeline, (select array_agg(name) from taken) as taken,
        (select array_agg(name) from leases where until > clock_timestamp()) as led,
        (select jsonb_agg(jsonb_build_object('roles', roles)) from processes where id <> ${this.id} and ${living}) as others`.execute(
      db,
    );
    const { version, timeline, taken, led, others } = rows[0]!;
    const why = outgrownBy(version);
    if (why) outgrown(why);
    // What it leads remembers things of the database that a standby which was promoted may lack.
    if (this.#timeline !== undefined && this.#timeline !== timeline)
      for (const lease of this.#leases.values()) lease.drop('another server of the database was promoted');
    else for (const [name, lease] of asked) lease.hear(taken?.includes(name) ?? false, askedMs);
    this.#timeline = timeline;
    // As it was before the statement: what that has taken comes to it.
    this.#filled = {
      processes: [{ roles }, ...(others ?? [])],
      led: new Set([...(led ?? []), ...(taken ?? [])]),
    };
  }

  /** How many processes that live have the role, this one included where it has it. */
  countOf(role: Role): number {
    return this.#filled.processes.filter(({ roles }) => roles.includes(role)).length;
  }

  /** How many processes live, this one included. */
  get count(): number {
    return this.#filled.processes.length;
  }

  /** Whether another process may write to the database. */
  get hasOthers(): boolean {
    return this.#filled.processes.length > 1;
  }

  /** Which of these roles nobody fills, and what waits for that; undefined where all are filled. */
  adviseOn(needed: readonly Role[]): string | undefined {
    return adviseOnRoles(this.#filled, needed);
  }

  leads(role: LedRole): boolean {
    return this.#leases.get(role)?.held !== undefined;
  }

  /** The lease of a role that this process has; undefined for one that it has not. */
  leaseOf(role: LedRole): Lease | undefined {
    return this.#leases.get(role);
  }

  /** Until the signal ends; then others take over at once. */
  async run(signal: AbortSignal): Promise<void> {
    const { db, log } = this.#options;
    const what = 'this process could not say that it lives; another one may take over';
    const failures = new Failures({ log, what, maxMs: FAILED_REST_MAX_MS });
    await sql`delete from processes where seen_at < clock_timestamp() - make_interval(secs => ${KEPT_SECONDS})`
      .execute(db)
      .catch((error) => failures.note(error));
    while (await pause(BEAT_MS, signal)) {
      try {
        await this.beat();
        failures.clear();
      } catch (error) {
        await pause(failures.note(error), signal);
      }
    }
  }

  /** Gives back what it leads. */
  async leave(): Promise<void> {
    const { db, log } = this.#options;
    try {
      for (const lease of this.#leases.values()) await lease.pass(Number.POSITIVE_INFINITY);
      await db.deleteFrom('processes').where('id', '=', this.id).execute();
    } catch (error) {
      log.debug({ err: error }, 'the other processes will notice by themselves that this one has gone');
    }
  }
}

function unlike(own: Identity, { host, pid, identity }: Other): AppError {
  const names = differences(own, identity);
  const keys = Object.entries(KEY_FILES).flatMap(([name, file]) => (names.includes(name) ? file : []));
  const advice = [
    ...(keys.length > 0
      ? [`copy ${keys.join(', ')} from its data directory to this one's, or use the same directory`]
      : []),
    ...(names.includes('files')
      ? ['give all of them one object store (SKERRY_CORE_S3_ENDPOINT), or one data directory on one server']
      : []),
  ];
  return new AppError(
    'INVALID_CONFIG',
    `another process of this node runs on the same database (process ${pid} on ${host}) and differs in: ${names.join(', ')}. ${advice.join('; ')} (docs/roles.md)`,
    { details: { differs: names } },
  );
}
