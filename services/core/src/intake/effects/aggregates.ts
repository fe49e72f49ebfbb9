import { aggregateSubject, SECURITY_KEY } from '@skerry/protocol';
import { sql } from 'kysely';
import { Effect, hashOf, made, type Step, undone, type Writing } from '../effect.ts';

interface Element {
  readonly key: string;
  readonly content: Readonly<Record<string, unknown>>;
}

/**
 * An aggregate is the union of its elements' top-level fields; a field belongs to the latest element that has it, by
 * (time, item hash). Each field is a row with the stamp of its element, so the order of arrival does not matter.
 */
export const aggregateEffect = new Effect<Element>({
  isByDate: () => true,
  compared: {
    part: 'aggregates',
    rows: sql`select row(owner, key, field, value::text, "time", item_hash)::text as r from aggregate_entries
      union all select row(owner, key, created, "time", item_hash)::text from aggregates`,
  },
  async write(steps, writing) {
    for (const { owner, data } of steps) {
      if (data.key === SECURITY_KEY) writing.changedKeys.add(`security:${owner}`);
    }
    const gone = undone(steps);
    if (gone.length > 0) await removeElements(writing, gone);
    const fresh = made(steps);
    if (fresh.length > 0) await addElements(writing, fresh);
  },
});

type ElementStep = Step<Element>;

const isLater = (a: ElementStep, b: ElementStep) => {
  const [x, y] = [a.message, b.message];
  return x.time !== y.time ? x.time > y.time : x.itemHash > y.itemHash;
};

/** One statement cannot write a row twice: of a batch, only the latest of each. */
function latestOf(rows: Map<string, ElementStep>, key: string, step: ElementStep): void {
  const before = rows.get(key);
  if (!before || isLater(step, before)) rows.set(key, step);
}

async function addElements({ trx }: Writing, fresh: readonly ElementStep[]): Promise<void> {
  const heads = new Map<string, ElementStep>();
  const earliest = new Map<string, number>();
  const entries = new Map<string, ElementStep>();
  for (const step of fresh) {
    const subject = aggregateSubject(step.owner, step.data.key);
    latestOf(heads, subject, step);
    earliest.set(subject, Math.min(earliest.get(subject) ?? Infinity, step.message.time));
    for (const field of Object.keys(step.data.content))
      latestOf(entries, JSON.stringify([subject, field]), step);
  }
  const headRows = [...heads];
  await sql`
    insert into aggregates (owner, key, created, "time", item_hash)
    select * from unnest(
      ${headRows.map(([, { owner }]) => owner)}::text[], ${headRows.map(([, { data }]) => data.key)}::text[],
      ${headRows.map(([subject]) => earliest.get(subject))}::float8[],
      ${headRows.map(([, { message }]) => message.time)}::float8[],
      ${headRows.map(([, step]) => hashOf(step))}::text[])
    on conflict (owner, key) do update set
      created = least(aggregates.created, excluded.created),
      ("time", item_hash) = (
        select v.t, v.h from (values (aggregates."time", aggregates.item_hash), (excluded."time", excluded.item_hash))
          as v (t, h) order by v.t desc, v.h desc limit 1)`.execute(trx);
  const rows = [...entries].map(([id, step]) => ({
    field: (JSON.parse(id) as [string, string])[1],
    step,
  }));
  if (rows.length === 0) return;
  await sql`
    insert into aggregate_entries (owner, key, field, value, "time", item_hash)
    select * from unnest(
      ${rows.map(({ step }) => step.owner)}::text[], ${rows.map(({ step }) => step.data.key)}::text[],
      ${rows.map(({ field }) => field)}::text[],
      ${rows.map(({ field, step }) => JSON.stringify(step.data.content[field]))}::jsonb[],
      ${rows.map(({ step }) => step.message.time)}::float8[],
      ${rows.map(({ step }) => hashOf(step))}::text[])
    on conflict (owner, key, field) do update set
      value = excluded.value, "time" = excluded."time", item_hash = excluded.item_hash
    where (excluded."time", excluded.item_hash) > (aggregate_entries."time", aggregate_entries.item_hash)`.execute(
    trx,
  );
}

/** Each field of a removed element goes back to the latest element that is left and has it. */
async function removeElements({ trx }: Writing, gone: readonly ElementStep[]): Promise<void> {
  const hashes = gone.map(hashOf);
  const subjects = [
    ...new Map(
      gone.map(({ owner, data: { key } }) => [aggregateSubject(owner, key), { owner, key }]),
    ).values(),
  ];
  const owners = subjects.map(({ owner }) => owner);
  const keys = subjects.map(({ key }) => key);
  const { rows: removed } = await sql<{ owner: string; key: string; field: string }>`
    delete from aggregate_entries where item_hash = any(${hashes}) returning owner, key, field`.execute(trx);
  await sql`
    insert into aggregate_entries (owner, key, field, value, "time", item_hash)
    select removed.owner, removed.key, removed.field, latest.value, latest."time", latest.item_hash
    from unnest(${removed.map((row) => row.owner)}::text[], ${removed.map((row) => row.key)}::text[],
      ${removed.map((row) => row.field)}::text[]) as removed (owner, key, field)
    cross join lateral (
      select m.content -> 'content' -> removed.field as value, m."time", m.item_hash from messages m
      where m.subject = removed.owner || E'\\n' || removed.key and m.type = 'AGGREGATE' and m.status = 'processed'
        and m.content -> 'content' ? removed.field
      order by m."time" desc, m.item_hash desc limit 1
    ) latest`.execute(trx);
  await sql`
    with touched as (select * from unnest(${owners}::text[], ${keys}::text[]) as t (owner, key)),
    left_over as (
      select touched.owner, touched.key, latest."time", latest.item_hash, earliest."time" as created from touched
      cross join lateral (
        select m."time", m.item_hash from messages m where m.subject = touched.owner || E'\\n' || touched.key
          and m.type = 'AGGREGATE' and m.status = 'processed' order by m."time" desc, m.item_hash desc limit 1) latest
      cross join lateral (
        select min(m."time") as "time" from messages m where m.subject = touched.owner || E'\\n' || touched.key
          and m.type = 'AGGREGATE' and m.status = 'processed') earliest
    ), emptied as (
      delete from aggregates a using touched t where a.owner = t.owner and a.key = t.key
        and not exists (select from left_over l where l.owner = t.owner and l.key = t.key)
    )
    update aggregates a set "time" = l."time", item_hash = l.item_hash, created = l.created
    from left_over l where a.owner = l.owner and a.key = l.key`.execute(trx);
}
