import type { Database } from '@skerry/database';
import { createTestDatabase, type TestDatabase } from '@skerry/database/testing';
import type { Logger } from '@skerry/kit';
import type { Schema } from '../../store/schema.ts';
import { MIGRATIONS } from '../../testing/core.ts';

/** What migrations put into a new database is kept beside it. */
const KEEP_FRESH = `
  create schema fresh;
  do $$ declare name text; has_rows boolean; begin
    for name in select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' loop
      execute format('select exists (select from public.%I)', name) into has_rows;
      if has_rows then execute format('create table fresh.%I as table public.%I', name, name); end if;
    end loop;
  end $$`;
/** Cheaper than another database by far: most tables are empty. */
const MAKE_FRESH = `
  do $$ declare name text; has_rows boolean; begin
    set local session_replication_role = replica;
    for name in select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' loop
      execute format('select exists (select from public.%I)', name) into has_rows;
      if has_rows then execute format('delete from public.%I', name); end if;
    end loop;
    for name in select relname from pg_class where relnamespace = 'fresh'::regnamespace and relkind = 'r' loop
      execute format('insert into public.%I overriding system value table fresh.%I', name, name);
    end loop;
    for name in select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'S' loop
      execute format('alter sequence public.%I restart', name);
    end loop;
  end $$`;

/** Databases for many runs, one after another: each is emptied before it is lent again. */
export class SimDatabases implements AsyncDisposable {
  readonly #log: Logger;
  readonly #all: TestDatabase<Schema>[] = [];
  #free: TestDatabase<Schema>[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  async lend(): Promise<Database<Schema>> {
    const used = this.#free.pop();
    if (used) {
      await used.pool.query(MAKE_FRESH);
      return used;
    }
    const made = await createTestDatabase<Schema>({ migrations: MIGRATIONS, log: this.#log });
    this.#all.push(made);
    await made.pool.query(KEEP_FRESH);
    return made;
  }

  /** A run is over: nobody uses what it was lent any more. */
  takeBack(): void {
    this.#free = [...this.#all];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#all) await one[Symbol.asyncDispose]();
  }
}
