import type { CopyValue, Writer } from '@skerry/database';
import type { Transaction } from 'kysely';
import { ROW, type Shaped } from '../../intake/pipeline/row.ts';
import type { Schema } from '../../store/schema.ts';
import { createLabeller } from './labels.ts';
import { TAG_COLUMNS } from './properties.ts';
import { beginCounting, type Counted, type Counting, endCounting, HEAVY } from './totals.ts';

/** A message that lists show from now on, or not any more. */
export interface Listed extends Shaped {
  readonly shown: boolean;
}

const NO_ROWS: CopyValue[][] = [];
const tagRowsOf = (one: Shaped): CopyValue[][] =>
  [...new Set(ROW.tags(one))].map((tag) => [tag, ...TAG_COLUMNS.map((column) => ROW[column](one))]);

/** Begins to count what lists show: it may go before the rows of the messages (totals.ts). */
export function countListed(trx: Transaction<Schema>, listed: readonly Listed[]): Counting {
  const labelsOf = createLabeller();
  return beginCounting(
    trx,
    listed.map((one): Counted => ({ labels: labelsOf(one), by: one.shown ? 1 : -1 })),
  );
}

/**
 * Keeps what lists are read from beside the messages themselves: tags and totals.
 *
 * @param counting of the same messages
 * @param heavyFrom messages that make a label heavy (totals.ts)
 */
export async function writeLists(
  { trx, copy }: Writer<Schema>,
  listed: readonly Listed[],
  counting: Counting,
  heavyFrom = HEAVY,
): Promise<void> {
  const gone = listed.filter((one) => !one.shown && one.accepted.tags.length > 0);
  if (gone.length > 0) {
    const hashes = gone.map(({ accepted }) => accepted.message.itemHash);
    await trx.deleteFrom('message_tags').where('item_hash', 'in', hashes).execute();
  }
  const rows = listed.flatMap((one) =>
    one.shown && one.accepted.tags.length > 0 ? tagRowsOf(one) : NO_ROWS,
  );
  if (rows.length > 0) copy('message_tags', ['tag', ...TAG_COLUMNS], rows);
  await endCounting(trx, counting, heavyFrom);
}
