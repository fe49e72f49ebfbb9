import type { Transaction } from 'kysely';
import type { Schema } from '../db/schema.ts';
import type { EventDraft } from '../events/append.ts';
import type { Accepted, Change } from './accepted.ts';
import { writeAggregates } from './effects/aggregates.ts';
import { writeCreditNotices, writeCreditPrices, writeCredits, writeResources } from './effects/credits.ts';
import type { Effect, EffectWriter, Writing } from './effects/effect.ts';
import { writeFiles, writePins } from './effects/files.ts';
import { writeForgets } from './effects/forgets.ts';
import { writeInstances } from './effects/instances.ts';
import { writeMetrics } from './effects/metrics.ts';
import { writeAmends } from './effects/posts.ts';
import { writePrograms } from './effects/programs.ts';
import { writeRuns } from './effects/runs.ts';
import type { Judged } from './judged.ts';

type Writers = { readonly [K in Change['kind']]: EffectWriter<K> };

/** In this order: a pin names a file. */
const WRITERS: Writers = {
  file: writeFiles,
  pin: writePins,
  aggregate: writeAggregates,
  amend: writeAmends,
  instance: writeInstances,
  program: writePrograms,
  metrics: writeMetrics,
  runs: writeRuns,
  resource: writeResources,
  credit: writeCredits,
  credit_notice: writeCreditNotices,
  credit_prices: writeCreditPrices,
  forget: writeForgets,
};

/** What follows from when a message is there: an instance's place among others, what it costs, since when it permits. */
const isByDate = (change: Change) =>
  change.kind === 'resource' ||
  change.kind === 'aggregate' ||
  (change.kind === 'instance' && change.fold.stage === 'creation');

/** What the step from one status to another does or takes back; what is there since another time is done anew. */
function effectsOf({ accepted, before, outcome, isRedated }: Judged): Effect[] {
  const [was, is] = [before === 'processed', outcome.status === 'processed'];
  if (was !== is) return accepted.changes.map((change) => ({ accepted, change, undo: was }));
  if (!was || !isRedated) return [];
  return accepted.changes
    .filter(isByDate)
    .flatMap((change) => [true, false].map((undo) => ({ accepted, change, undo })));
}

/** Writes what a batch does to the state, after its message rows. */
export async function writeEffects(
  trx: Transaction<Schema>,
  changed: readonly Judged[],
  schedulers: ReadonlySet<string>,
  events: EventDraft[],
): Promise<Pick<Writing, 'changedKeys' | 'reconsider'>> {
  const writing: Writing = { trx, schedulers, events, changedKeys: new Set(), reconsider: new Set() };
  // Also of what is pending: a FORGET of it waits for nothing else.
  for (const { accepted } of changed) writing.changedKeys.add(`message:${accepted.message.itemHash}`);
  await writeAll(changed.flatMap(effectsOf), writing);
  return writing;
}

async function writeAll(effects: readonly Effect[], writing: Writing): Promise<void> {
  for (const kind of Object.keys(WRITERS) as Change['kind'][]) {
    const own = effects.filter((effect) => effect.change.kind === kind);
    if (own.length > 0) await (WRITERS[kind] as EffectWriter<Change['kind']>)(own, writing);
  }
}

/** What counts only by somebody who is trusted. */
const TRUSTED: ReadonlySet<Change['kind']> = new Set([
  'instance',
  'metrics',
  'credit',
  'credit_notice',
  'credit_prices',
]);

/** Takes back and makes again what messages in force do whose senders are trusted otherwise than when they came. */
export async function rewriteEffects(
  trx: Transaction<Schema>,
  inForce: readonly Accepted[],
  schedulers: ReadonlySet<string>,
  events: EventDraft[],
): Promise<Pick<Writing, 'changedKeys' | 'reconsider'>> {
  const writing: Writing = { trx, schedulers, events, changedKeys: new Set(), reconsider: new Set() };
  const effects = [true, false].flatMap((undo) =>
    inForce.flatMap((accepted) =>
      accepted.changes.flatMap((change) => (TRUSTED.has(change.kind) ? [{ accepted, change, undo }] : [])),
    ),
  );
  await writeAll(effects, writing);
  return writing;
}
