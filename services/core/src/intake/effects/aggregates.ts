import { prepared } from '@skerry/database';
import { aggregateSubject, SECURITY_KEY } from '@skerry/protocol';
import { sql } from 'kysely';
import { securityKey } from '../../store/dependency-keys.ts';
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
  rowsOf: ({ content }) => Object.keys(content).length,
  compared: {
    part: 'aggregates',
    rows: sql`select row(owner, key, field, value::text, "time", item_hash)::text as r from aggregate_entries
      union all select row(owner, key, created, "time", item_hash)::text from aggregates`,
  },
  async write(steps, writing) {
    for (const { owner, data } of steps) {
      if (data.key === SECURITY_KEY) writing.changedKeys.add(securityKey(owner));
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

async function addElements(writing: Writing, fresh: readonly ElementStep[]): Promise<void> {
  await addHeads(writing, fresh);
  await addFields(writing, fresh);
}

async function addHeads({ trx }: Writing, fresh: readonly ElementStep[]): Promise<void> {
  const heads = new Map<string, ElementStep>();
  const earliest = new Map<string, number>();
  for (const step of fresh) {
    const subject = aggregateSubject(step.owner, step.data.key);
    latestOf(heads, subject, step);
    earliest.set(subject, Math.min(earliest.get(subject) ?? Infinity, step.message.time));
  }
  const headRows = [...heads];
  await sql`${prepared()}
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
}

interface FieldRow {
  readonly step: ElementStep;
  readonly field: string;
  readonly value: unknown;
}

/** Fields in the order of the keys that they are found by: neighbours lie on one page of each index. */
const inOrder = (a: FieldRow, b: FieldRow) => {
  const [x, y] = [a.step, b.step];
  if (x !== y) {
    if (x.owner !== y.owner) return x.owner < y.owner ? -1 : 1;
    if (x.data.key !== y.data.key) return x.data.key < y.data.key ? -1 : 1;
  }
  return a.field < b.field ? -1 : a.field > b.field ? 1 : isLater(x, y) ? -1 : 1;
};

const fieldsOf = (steps: readonly ElementStep[]): FieldRow[] =>
  steps
    .flatMap((step) => Object.entries(step.data.content).map(([field, value]) => ({ step, field, value })))
    .sort(inOrder);

/** Whether the row before it, which is later, has the same field of the same aggregate. */
const isBeneath = ({ step, field }: FieldRow, before: FieldRow | undefined) =>
  before !== undefined &&
  before.field === field &&
  before.step.data.key === step.data.key &&
  before.step.owner === step.owner;

const givenRows = (rows: readonly FieldRow[]) => sql`
  select * from unnest(
    ${rows.map(({ step }) => step.owner)}::text[], ${rows.map(({ step }) => step.data.key)}::text[],
    ${rows.map(({ field }) => field)}::text[], ${rows.map(({ value }) => JSON.stringify(value))}::jsonb[],
    ${rows.map(({ step }) => step.message.time)}::float8[],
    ${rows.map(({ step }) => hashOf(step))}::text[]) as g (owner, key, field, value, "time", item_hash)`;

/**
 * The latest that has a field is what the field is; the others are kept beneath it. Of most fields there is one: what there was before is
 * looked up, and nothing else is sorted or compared.
 */
async function addFields({ trx }: Writing, fresh: readonly ElementStep[]): Promise<void> {
  const rows = fieldsOf(fresh);
  if (rows.length === 0) return;
  const [top, beneath]: [FieldRow[], FieldRow[]] = [[], []];
  for (const [index, row] of rows.entries()) (isBeneath(row, rows[index - 1]) ? beneath : top).push(row);
  await sql`${prepared()}
    with top as materialized (${givenRows(top)}),
    before as materialized (
      select e.* from top g cross join lateral (
        select owner, key, field, value, "time", item_hash from aggregate_entries
        where owner = g.owner and key = g.key and field = g.field limit 1) e),
    covered as (
      insert into aggregate_covered (owner, key, field, value, "time", item_hash)
      select b.* from before b join top g using (owner, key, field) where (b."time", b.item_hash) < (g."time", g.item_hash)
      union all
      select g.* from before b join top g using (owner, key, field) where (g."time", g.item_hash) < (b."time", b.item_hash)
      union all
      (${givenRows(beneath)})
      on conflict do nothing)
    insert into aggregate_entries as e (owner, key, field, value, "time", item_hash)
    select owner, key, field, value, "time", item_hash from top
    on conflict (owner, key, field) do update set
      value = excluded.value, "time" = excluded."time", item_hash = excluded.item_hash
    where (e."time", e.item_hash) < (excluded."time", excluded.item_hash)`.execute(trx);
}

async function removeElements(writing: Writing, gone: readonly ElementStep[]): Promise<void> {
  await removeFields(writing, gone);
  await removeHeads(writing, gone);
}

/** Each field of a removed element goes back to the latest element that is left and has it. */
async function removeFields({ trx }: Writing, gone: readonly ElementStep[]): Promise<void> {
  const rows = fieldsOf(gone);
  if (rows.length === 0) return;
  const given = sql`
    select * from unnest(
      ${rows.map(({ step }) => step.owner)}::text[], ${rows.map(({ step }) => step.data.key)}::text[],
      ${rows.map(({ field }) => field)}::text[], ${rows.map(({ step }) => step.message.time)}::float8[],
      ${rows.map(({ step }) => hashOf(step))}::text[]) as g (owner, key, field, "time", item_hash)`;
  await sql`
    delete from aggregate_covered c using (${given}) g
    where c.owner = g.owner and c.key = g.key and c.field = g.field and c."time" = g."time" and c.item_hash = g.item_hash`.execute(
    trx,
  );
  await sql`
    with removed as (
      delete from aggregate_entries e using (${given}) g
      where e.owner = g.owner and e.key = g.key and e.field = g.field and e.item_hash = g.item_hash
      returning e.owner, e.key, e.field),
    latest as materialized (
      select c.* from removed r cross join lateral (
        select * from aggregate_covered c where c.owner = r.owner and c.key = r.key and c.field = r.field
        order by c."time" desc, c.item_hash desc limit 1) c),
    uncovered as (
      delete from aggregate_covered c using latest l
      where c.owner = l.owner and c.key = l.key and c.field = l.field and c."time" = l."time" and c.item_hash = l.item_hash)
    insert into aggregate_entries (owner, key, field, value, "time", item_hash)
    select owner, key, field, value, "time", item_hash from latest`.execute(trx);
}

async function removeHeads({ trx }: Writing, gone: readonly ElementStep[]): Promise<void> {
  const subjects = [
    ...new Map(
      gone.map(({ owner, data: { key } }) => [aggregateSubject(owner, key), { owner, key }]),
    ).values(),
  ];
  const owners = subjects.map(({ owner }) => owner);
  const keys = subjects.map(({ key }) => key);
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
