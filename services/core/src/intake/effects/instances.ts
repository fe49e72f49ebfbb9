import {
  type InstanceFold,
  type InstanceState,
  instanceViewOf,
  NETWORK_POST,
  UNIX_MS_MAX,
} from '@skerry/protocol';
import { type RawBuilder, type Selectable, sql } from 'kysely';
import { rowOf, stateOf } from '../../state/instances/rows.ts';
import type { Schema } from '../../store/schema.ts';
import { type Change, Effect, hashOf, made, type Step, undone, type Writing } from '../effect.ts';

interface InstanceChange {
  readonly instanceId: string;
  readonly fold: InstanceFold;
}

/** As JSON, whose numbers have their order and no bound. */
const OBSERVED_MS = sql`content -> 'content' -> 'observed_at_ms'`;

const foldOf = (changes: readonly Change[], instanceId: string): InstanceFold | undefined =>
  instanceEffect.dataIn(changes).find((one) => one.instanceId === instanceId)?.fold;

/** Messages that are in memory at once: an owner may write any number about an instance. */
const ROWS = 200;

type Content = Readonly<Record<string, unknown>>;

/** A part of an instance that the latest message decides which speaks of it. */
interface Part {
  /** Of a row of `messages`. */
  readonly where: RawBuilder<unknown>;
  isIn(content: Content): boolean;
}

const UPDATED: readonly Part[] = ['name', 'description', 'firewall'].map((field) => ({
  where: sql`content ? ${sql.lit(field)}`,
  isIn: (content) => Object.hasOwn(content, field),
}));
const CONTROLLED: readonly Part[] = [
  { where: sql`true`, isIn: () => true },
  { where: sql`content ->> 'action' = 'restart'`, isIn: ({ action }) => action === 'restart' },
];

interface Narrowed {
  readonly type: 'INSTANCE_UPDATE' | 'INSTANCE_CONTROL' | 'POST';
  /** What they decide; all that there are matter where it is left out. */
  readonly parts?: readonly Part[];
  readonly contentType?: string;
  readonly senders?: readonly string[];
}

/** What messages in force of one type say of an instance, the latest first, a page at a time: until all that they decide is decided. */
async function* readSaid(
  { trx, changesOf }: Writing,
  instanceId: string,
  { type, contentType, senders, parts }: Narrowed,
): AsyncGenerator<InstanceFold> {
  /** When each part was spoken of last. */
  const spoken = new Map<Part, number>();
  let after = sql``;
  for (;;) {
    const { rows } = await sql<Selectable<Schema['messages']>>`
      select * from messages where subject = ${instanceId} and type = ${type} and status = 'processed'
        ${contentType === undefined ? sql`` : sql`and content_type = ${contentType}`}
        ${senders === undefined ? sql`` : sql`and sender = any(${senders}::text[])`} ${after}
      order by "time" desc, item_hash limit ${sql.lit(ROWS)}`.execute(trx);
    for (const row of rows) {
      const fold = foldOf(changesOf(row), instanceId);
      if (fold) yield fold;
      for (const part of parts ?? [])
        if (!spoken.has(part) && part.isIn(row.content ?? {})) spoken.set(part, row.time);
    }
    const last = rows.at(-1);
    if (!last || rows.length < ROWS) return;
    // Of several at one time the hash decides, and more of them may follow.
    const open = parts?.filter((part) => (spoken.get(part) ?? last.time) === last.time);
    if (open?.length === 0) return;
    const wanted = open
      ? sql`and (${sql.join(
          open.map(({ where }) => where),
          sql` or `,
        )})`
      : sql``;
    after = sql`${wanted} and "time" <= ${last.time}::float8 and ("time" < ${last.time}::float8 or item_hash > ${last.item_hash})`;
  }
}

/** The last that an allocated node observed of an instance. */
async function findStatus(
  { trx, changesOf }: Writing,
  instanceId: string,
  nodeAddress: string,
): Promise<InstanceFold | undefined> {
  const row = await trx
    .selectFrom('messages')
    .selectAll()
    .where('status', '=', 'processed')
    .where('content_type', '=', NETWORK_POST.instanceStatus)
    .where('sender', '=', nodeAddress)
    .where('subject', '=', instanceId)
    // Larger ones were taken once, and are read no more.
    .where(sql<boolean>`${OBSERVED_MS} <= to_jsonb(${sql.lit(UNIX_MS_MAX)}::bigint)`)
    .orderBy(OBSERVED_MS, 'desc')
    .orderBy('item_hash', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row && foldOf(changesOf(row), instanceId);
}

/** Everything in force that is known of an instance, but of the statuses only the last one by the node that is allocated. */
async function foldAgain(writing: Writing, instanceId: string): Promise<InstanceState | undefined> {
  const { trx, schedulers, changesOf } = writing;
  const creation = await trx
    .selectFrom('messages')
    .selectAll()
    .where('item_hash', '=', instanceId)
    .where('status', '=', 'processed')
    .executeTakeFirst();
  let state = creation && foldOf(changesOf(creation), instanceId)?.apply(undefined, schedulers);
  if (!state) return undefined;
  const said: readonly Narrowed[] = [
    { type: 'INSTANCE_UPDATE', parts: UPDATED },
    { type: 'INSTANCE_CONTROL', parts: CONTROLLED },
    { type: 'POST', contentType: NETWORK_POST.allocation, senders: [...schedulers] },
  ];
  for (const narrowed of said)
    for await (const fold of readSaid(writing, instanceId, narrowed)) state = fold.apply(state, schedulers);
  const status = state?.nodeAddress ? await findStatus(writing, instanceId, state.nodeAddress) : undefined;
  return status ? status.apply(state, schedulers) : state;
}

const mayNeedAll = ({ data: { fold }, undo }: Step<InstanceChange>) =>
  undo || fold.stage === 'creation' || fold.stage === 'allocation';

/** An instance after a change, and the message that it follows from: null where it was not one alone. */
interface Changed {
  readonly state: InstanceState | undefined;
  readonly cause: string | null;
}

/** Each change that is made one by one. */
function applyAll(
  steps: readonly Step<InstanceChange>[],
  old: InstanceState | undefined,
  schedulers: ReadonlySet<string>,
): Changed[] {
  let at = old;
  return steps.flatMap((step) => {
    const before = at;
    at = step.data.fold.apply(at, schedulers);
    return at === before ? [] : [{ state: at, cause: hashOf(step) }];
  });
}

/** The same for those that may turn on earlier messages: all at once. */
async function applyAgain(
  steps: readonly Step<InstanceChange>[],
  instanceId: string,
  writing: Writing,
): Promise<Changed[]> {
  const [only, ...others] = made(steps);
  const isAlone = only !== undefined && others.length === 0 && undone(steps).length === 0;
  const state = await foldAgain(writing, instanceId);
  return [{ state, cause: isAlone ? hashOf(only) : null }];
}

/** The common case, a change or a status, is one step; what may turn on earlier messages is folded from all of them. */
async function writeInstances(steps: readonly Step<InstanceChange>[], writing: Writing): Promise<void> {
  const byId = Map.groupBy(steps, ({ data }) => data.instanceId);
  const { trx, schedulers, events } = writing;
  const rows = await trx
    .selectFrom('instances')
    .selectAll()
    .where('instance_id', 'in', [...byId.keys()])
    .execute();
  const before = new Map(rows.map((row) => [row.instance_id, stateOf(row)]));
  const changed: InstanceState[] = [];
  const removed: string[] = [];
  for (const [instanceId, own] of byId) {
    const old = before.get(instanceId);
    const all = own.some(mayNeedAll)
      ? await applyAgain(own, instanceId, writing)
      : applyAll(own, old, schedulers);
    const last = all.at(-1);
    if (!last || last.state === old) continue;
    if (last.state) changed.push(last.state);
    else removed.push(instanceId);
    for (const { state, cause } of all)
      events.push(
        state
          ? { kind: 'instance', data: instanceViewOf(state), cause }
          : { kind: 'instance_removed', data: { instance_id: instanceId } },
      );
  }
  if (removed.length > 0) await trx.deleteFrom('instances').where('instance_id', 'in', removed).execute();
  if (changed.length > 0) await upsert(writing, changed);
}

async function upsert({ trx }: Writing, states: readonly InstanceState[]): Promise<void> {
  const rows = states.map(rowOf);
  const columns = Object.keys(rows[0]!).filter((name) => name !== 'instance_id') as Exclude<
    keyof Schema['instances'],
    'instance_id'
  >[];
  await trx
    .insertInto('instances')
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .column('instance_id')
        .doUpdateSet((eb) => Object.fromEntries(columns.map((name) => [name, eb.ref(`excluded.${name}`)]))),
    )
    .execute();
}

/** The state of an instance is a fold over what was said of it. */
export const instanceEffect: Effect<InstanceChange> = new Effect({
  compared: { part: 'instances', rows: sql`select to_jsonb(i)::text as r from instances i` },
  isByTrust: true,
  isByDate: ({ fold }) => fold.stage === 'creation',
  write: writeInstances,
});
