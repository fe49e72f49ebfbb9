import type { Writer } from '../db/copy.ts';
import type { Schema } from '../db/schema.ts';
import type { Accepted } from '../messages/accepted.ts';
import { labelsOf } from './labels.ts';
import { type Counted, countIn, HEAVY } from './totals.ts';

/** A message that lists show from now on, or not any more. */
export interface Listed {
  readonly accepted: Accepted;
  readonly shape: number | null;
  readonly shown: boolean;
}

/**
 * Keeps what lists are read from beside the messages themselves: tags and totals.
 *
 * @param heavyFrom messages that make a label heavy (totals.ts)
 */
export async function writeLists(
  { trx, copy }: Writer<Schema>,
  listed: readonly Listed[],
  heavyFrom = HEAVY,
): Promise<void> {
  const gone = listed.filter((one) => !one.shown && one.accepted.tags.length > 0);
  if (gone.length > 0) {
    const hashes = gone.map(({ accepted }) => accepted.message.itemHash);
    await trx.deleteFrom('message_tags').where('item_hash', 'in', hashes).execute();
  }
  const tags = listed
    .filter((one) => one.shown)
    .flatMap(({ accepted: { message, tags }, shape }) =>
      [...new Set(tags)].map((tag) => ({ tag, message, shape })),
    );
  if (tags.length > 0) {
    await copy(
      'message_tags',
      ['item_hash', 'tag', 'type', 'sender', 'channel', 'shape', 'time'],
      tags.map(({ tag, shape, message: { itemHash, type, sender, channel, time } }) => [
        itemHash,
        tag,
        type,
        sender,
        channel,
        shape,
        time,
      ]),
    );
  }
  const counted = listed.map(
    ({ accepted, shape, shown }): Counted => ({ labels: labelsOf(accepted, shape), by: shown ? 1 : -1 }),
  );
  await countIn(trx, counted, heavyFrom);
}
