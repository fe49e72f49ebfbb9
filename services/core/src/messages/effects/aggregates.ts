import { sql } from 'kysely';
import { SECURITY_KEY } from '../permissions.ts';
import { aggregateSubject } from '../verdict.ts';
import type { Effect, EffectWriter, Writing } from './effect.ts';

/**
 * An aggregate is the union of its elements' top-level fields; a field belongs to the latest element that has it, by
 * (time, item hash). Each field is a row with the stamp of its element, so the order of arrival does not matter.
 */
export const writeAggregates: EffectWriter<'aggregate'> = async (effects, writing) => {
  for (const { accepted, change } of effects) {
    if (change.key === SECURITY_KEY) writing.changedKeys.add(`security:${accepted.owner}`);
  }
  const gone = effects.filter((effect) => effect.undo);
  if (gone.length > 0) await removeElements(writing, gone);
  const made = effects.filter((effect) => !effect.undo);
  if (made.length > 0) await addElements(writing, made);
};

type Element = Effect<'aggregate'>;

const isLater = (a: Element, b: Element) => {
  const [x, y] = [a.accepted.message, b.accepted.message];
  return x.time !== y.time ? x.time > y.time : x.itemHash > y.itemHash;
};

/** One statement cannot write a row twice: of a batch, only the latest of each. */
function latestOf(rows: Map<string, Element>, key: string, effect: Element): void {
  const before = rows.get(key);
  if (!before || isLater(effect, before)) rows.set(key, effect);
}

async function addElements({ trx }: Writing, made: readonly Element[]): Promise<void> {
  const heads = new Map<string, Element>();
  const earliest = new Map<string, number>();
  const entries = new Map<string, Element>();
  for (const effect of made) {
    const subject = aggregateSubject(effect.accepted.owner, effect.change.key);
    latestOf(heads, subject, effect);
    earliest.set(subject, Math.min(earliest.get(subject) ?? Infinity, effect.accepted.message.time));
    for (const field of Object.keys(effect.change.content))
      latestOf(entries, JSON.stringify([subject, field]), effect);
  }
  const headRows = [...heads];
  await sql`
    insert into aggregates (owner, key, created, "time", item_hash)
    select * from unnest(
      ${headRows.map(([, { accepted }]) => accepted.owner)}::text[], ${headRows.map(([, { change }]) => change.key)}::text[],
      ${headRows.map(([subject]) => earliest.get(subject))}::float8[],
      ${headRows.map(([, { accepted }]) => accepted.message.time)}::float8[],
      ${headRows.map(([, { accepted }]) => accepted.message.itemHash)}::text[])
    on conflict (owner, key) do update set
      created = least(aggregates.created, excluded.created),
      ("time", item_hash) = (
        select v.t, v.h from (values (aggregates."time", aggregates.item_hash), (excluded."time", excluded.item_hash))
          as v (t, h) order by v.t desc, v.h desc limit 1)`.execute(trx);
  const rows = [...entries].map(([id, effect]) => ({
    field: (JSON.parse(id) as [string, string])[1],
    effect,
  }));
  if (rows.length === 0) return;
  await sql`
    insert into aggregate_entries (owner, key, field, value, "time", item_hash)
    select * from unnest(
      ${rows.map(({ effect }) => effect.accepted.owner)}::text[], ${rows.map(({ effect }) => effect.change.key)}::text[],
      ${rows.map(({ field }) => field)}::text[],
      ${rows.map(({ field, effect }) => JSON.stringify(effect.change.content[field]))}::jsonb[],
      ${rows.map(({ effect }) => effect.accepted.message.time)}::float8[],
      ${rows.map(({ effect }) => effect.accepted.message.itemHash)}::text[])
    on conflict (owner, key, field) do update set
      value = excluded.value, "time" = excluded."time", item_hash = excluded.item_hash
    where (excluded."time", excluded.item_hash) > (aggregate_entries."time", aggregate_entries.item_hash)`.execute(
    trx,
  );
}

/** Each field of a removed element goes back to the latest element that is left and has it. */
async function removeElements({ trx }: Writing, gone: readonly Element[]): Promise<void> {
  const hashes = gone.map(({ accepted }) => accepted.message.itemHash);
  const subjects = [
    ...new Map(
      gone.map(({ accepted, change }) => [
        aggregateSubject(accepted.owner, change.key),
        { owner: accepted.owner, key: change.key },
      ]),
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
