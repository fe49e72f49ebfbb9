import type { Transaction } from 'kysely';
import type { EventDraft } from '../../notify/events/append.ts';
import { messageKey } from '../../store/dependency-keys.ts';
import type { Schema } from '../../store/schema.ts';
import { acceptMessage } from '../accept.ts';
import type { Accepted } from '../accepted.ts';
import type { Change, Effect, Step, Writing } from '../effect.ts';
import { verifiedOf } from '../stored.ts';
import type { Decided } from './decided.ts';

type EffectStep = Step<unknown> & Pick<Change, 'effect'>;

const stepOf = (
  { message, owner }: Accepted,
  { effect, data }: Change,
  undo: boolean,
  isNew = false,
): EffectStep => ({ effect, message, owner, data, undo, isNew });

/** What the steps from one status to another do or take back; what is there since another time is done anew. */
function stepsOf(changed: readonly Decided[]): EffectStep[] {
  const steps: EffectStep[] = [];
  for (const { accepted, before, verdict, isRedated } of changed) {
    const was = before === 'processed';
    const isOther = was !== (verdict.status === 'processed');
    for (const change of accepted.changes) {
      if (isOther) steps.push(stepOf(accepted, change, was, before === null));
      else if (was && isRedated && change.effect.isByDate(change.data))
        for (const undo of [true, false]) steps.push(stepOf(accepted, change, undo));
    }
  }
  return steps;
}

const beginWriting = (
  trx: Transaction<Schema>,
  schedulers: ReadonlySet<string>,
  events: EventDraft[],
): Writing => ({
  trx,
  schedulers,
  events,
  changedKeys: new Set(),
  reconsider: new Set(),
  changesOf: (row) => acceptMessage(verifiedOf(row)).changes,
});

/** Writes what a batch does to the state, after its message rows. */
export async function writeEffects(
  trx: Transaction<Schema>,
  changed: readonly Decided[],
  schedulers: ReadonlySet<string>,
  events: EventDraft[],
): Promise<Pick<Writing, 'changedKeys' | 'reconsider'>> {
  const writing = beginWriting(trx, schedulers, events);
  // Also of what is pending: a FORGET of it waits for nothing else.
  for (const { accepted } of changed) writing.changedKeys.add(messageKey(accepted.message.itemHash));
  await writeAll(stepsOf(changed), writing);
  return writing;
}

async function writeAll(steps: readonly EffectStep[], writing: Writing): Promise<void> {
  const byEffect: [Effect<unknown>, EffectStep[]][] = [...Map.groupBy(steps, ({ effect }) => effect)];
  for (const [effect, own] of byEffect.toSorted(([a], [b]) => a.stage - b.stage))
    await effect.write(own, writing);
}

/** Takes back and makes again what messages in force do whose senders are trusted otherwise than when they came. */
export async function rewriteEffects(
  trx: Transaction<Schema>,
  inForce: readonly Accepted[],
  schedulers: ReadonlySet<string>,
  events: EventDraft[],
): Promise<Pick<Writing, 'changedKeys' | 'reconsider'>> {
  const writing = beginWriting(trx, schedulers, events);
  const steps = [true, false].flatMap((undo) =>
    inForce.flatMap((accepted) =>
      accepted.changes
        .filter(({ effect }) => effect.isByTrust)
        .map((change) => stepOf(accepted, change, undo)),
    ),
  );
  await writeAll(steps, writing);
  return writing;
}
