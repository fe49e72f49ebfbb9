import { createHash } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';

/** Longer lists are one parameter each. */
const SPELLED_MAX = 64;
const MARK = '/* prepared */';

/**
 * Begins a statement that comes again and again with the same text, whose best plan is the same whatever its parameters are: each
 * connection parses and plans it once.
 * @param lists what it says by `textsOf`: the best way to a few rows is not that to thousands, and then it is planned for itself
 */
export const prepared = (...lists: readonly (readonly string[])[]): RawBuilder<unknown> =>
  sql.raw(lists.every(({ length }) => length <= SPELLED_MAX) ? MARK : '');

/**
 * Texts as an array that is spelled out in one of few lengths, the last one repeated where they are fewer. Of a list in one parameter
 * PostgreSQL does not know how long it will be, and plans it anew each time where it expects it to be longer than it is.
 */
export function textsOf(texts: readonly string[]): RawBuilder<string[]> {
  if (texts.length === 0) return sql`array[]::text[]`;
  if (texts.length > SPELLED_MAX) return sql`${texts}::text[]`;
  const length = 2 ** Math.ceil(Math.log2(texts.length));
  return sql`array[${sql.join(Array.from({ length }, (_, at) => texts[at] ?? texts.at(-1)))}]::text[]`;
}

/** More than the node has. A text that is made of what somebody sent must not fill the server's memory. */
const NAMES_MAX = 256;
const names = new Map<string, string>();

/** The name under which a statement is prepared; undefined where it is not to be. */
function nameOf(text: string): string | undefined {
  if (!text.startsWith(MARK)) return undefined;
  const known = names.get(text);
  if (known !== undefined || names.size >= NAMES_MAX) return known;
  const name = `skerry-${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
  names.set(text, name);
  return name;
}

/** A plan that was made when a table was small is not kept for longer, since no event tells that it has grown. */
const PLANS_KEPT_MS = 5_000;

/** Which statements of one connection are prepared. */
export class Prepared {
  readonly #now: () => number;
  /** Behind a pooler a statement may meet another session than the one that knows its name. */
  #isDirect = false;
  #oldAtMs = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** To be called once it is connected: finds out whether whoever let it in is also who answers. */
  async begin(client: pg.ClientBase): Promise<void> {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    // A pooler lets in by numbers of its own.
    this.#isDirect = rows[0]?.pid === (client as { processID?: number | null }).processID;
    this.#oldAtMs = this.#now() + PLANS_KEPT_MS;
  }

  /** The name of a statement that is to be prepared. */
  nameOf(text: string): string | undefined {
    return this.#isDirect ? nameOf(text) : undefined;
  }

  /** Whether plans are to be made anew: once in a while, whoever asks first. */
  areOld(): boolean {
    const nowMs = this.#now();
    if (nowMs < this.#oldAtMs) return false;
    this.#oldAtMs = nowMs + PLANS_KEPT_MS;
    return true;
  }
}

/** What the server says of a statement whose columns have changed since (PostgreSQL's RevalidateCachedQuery). */
export const isOutdated = (error: { code?: unknown; routine?: unknown }): boolean =>
  error.code === '0A000' && error.routine === 'RevalidateCachedQuery';
