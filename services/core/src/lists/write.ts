import type { Writer } from '../db/copy.ts';
import type { Schema } from '../db/schema.ts';
import type { Accepted } from '../messages/accepted.ts';
import { labelsOf } from './labels.ts';
import { type Counted, countIn } from './totals.ts';

/** A message that lists show from now on, or not any more. */
export interface Listed {
  readonly accepted: Accepted;
  readonly shape: number | null;
  readonly shown: boolean;
}

/** Keeps what lists are read from beside the messages themselves: tags and totals. */
export async function writeLists({ trx, copy }: Writer<Schema>, listed: readonly Listed[]): Promise<void> {
  const gone = listed.filter((one) => !one.shown && one.accepted.tags.length > 0);
  if (gone.length > 0) {
    const hashes = gone.map(({ accepted }) => accepted.message.itemHash);
    await trx.deleteFrom('message_tags').where('item_hash', 'in', hashes).execute();
  }
  const tags = listed
    .filter((one) => one.shown)
    .flatMap(({ accepted: { message, tags } }) => [...new Set(tags)].map((tag) => ({ tag, message })));
  if (tags.length > 0) {
    await copy(
      'message_tags',
      ['item_hash', 'tag', 'type', 'sender', 'channel', 'time'],
      tags.map(({ tag, message: { itemHash, type, sender, channel, time } }) => [
        itemHash,
        tag,
        type,
        sender,
        channel,
        time,
      ]),
    );
  }
  const counted = listed.map(
    ({ accepted, shape, shown }): Counted => ({ labels: labelsOf(accepted, shape), by: shown ? 1 : -1 }),
  );
  await countIn(trx, counted);
}
