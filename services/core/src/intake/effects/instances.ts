import {
  foldAll,
  type InstanceFold,
  type InstanceState,
  instanceViewOf,
  NETWORK_POST,
} from '@skerry/protocol';
import { sql } from 'kysely';
import { rowOf, stateOf } from '../../state/instances/rows.ts';
import type { Schema } from '../../store/schema.ts';
import { type Change, Effect, hashOf, made, type Step, undone, type Writing } from '../effect.ts';

interface InstanceChange {
  readonly instanceId: string;
  readonly fold: InstanceFold;
}

const foldOf = (changes: readonly Change[], instanceId: string): InstanceFold | undefined =>
  instanceEffect.dataIn(changes).find((one) => one.instanceId === instanceId)?.fold;

/** Everything in force that is known of an instance, but of the statuses only the last one by the node that is allocated. */
async function foldAgain(
  { trx, schedulers, changesOf }: Writing,
  instanceId: string,
): Promise<InstanceState | undefined> {
  const own = await trx
    .selectFrom('messages')
    .selectAll()
    .where('status', '=', 'processed')
    .where((eb) =>
      eb.or([
        eb('item_hash', '=', instanceId),
        eb.and([
          eb('subject', '=', instanceId),
          eb.or([
            eb('type', 'in', ['INSTANCE_UPDATE', 'INSTANCE_CONTROL']),
            eb.and([
              eb('type', '=', 'POST'),
              eb('content_type', '=', NETWORK_POST.allocation),
              eb('sender', 'in', [...schedulers, '']),
            ]),
          ]),
        ]),
      ]),
    )
    .execute();
  const folds = own.flatMap((row) => foldOf(changesOf(row), instanceId) ?? []);
  const state = foldAll(folds, schedulers);
  if (!state?.nodeAddress) return state;
  const status = await trx
    .selectFrom('messages')
    .selectAll()
    .where('status', '=', 'processed')
    .where('content_type', '=', NETWORK_POST.instanceStatus)
    .where('sender', '=', state.nodeAddress)
    .where('subject', '=', instanceId)
    .orderBy(sql`(content -> 'content' ->> 'observed_at_ms')::bigint`, 'desc')
    .orderBy('item_hash', 'desc')
    .limit(1)
    .executeTakeFirst();
  const last = status && foldOf(changesOf(status), instanceId);
  return last ? foldAll([...folds, last], schedulers) : state;
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
