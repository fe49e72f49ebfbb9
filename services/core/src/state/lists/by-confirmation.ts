import { type Kysely, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Schema } from '../../store/schema.ts';
import { SHOWN_COLUMNS } from '../messages/columns.ts';
import {
  type ConfirmedPage,
  confirmedOrder,
  confirmedPage,
  firstConfirmedAt,
} from '../messages/first-confirmation.ts';
import { chooseScans } from './choose.ts';
import { isRepeating, rowsOf } from './driver.ts';
import { isEmpty, resolveFilter } from './filter.ts';
import type { MessageFilter } from './properties.ts';
import { withTimeLimit } from './time-limit.ts';
import { HOLDS_NOTHING, type Hold, readWeighed } from './weight.ts';

type ConfirmedMessage = StoredMessage & { readonly confirmed: number | null };

/** Messages in order of their first confirmation. No index has that order: all that fit are sorted. Throws as listMessages. */
export async function listByConfirmation(
  db: Kysely<Schema>,
  asked: MessageFilter,
  page: ConfirmedPage,
  hold: Hold = HOLDS_NOTHING,
): Promise<ConfirmedMessage[]> {
  const filter = await resolveFilter(db, asked);
  if (isEmpty(filter)) return [];
  const scans = await chooseScans(db, filter);
  if (scans.length === 0) return [];
  const found = scans.map((driver) => {
    const distinct = isRepeating(filter, driver) ? sql`distinct` : sql``;
    return sql`(select ${distinct} x.item_hash ${rowsOf(filter, driver)})`;
  });
  const rows = sql`select m.item_hash, m."time", ${firstConfirmedAt('m')} as confirmed
    from (${sql.join(found, sql` union all `)}) x join messages m using (item_hash)`;
  return withTimeLimit(db, (on) =>
    readWeighed<ConfirmedMessage>(on, {
      columns: sql`${SHOWN_COLUMNS}, nullif(o.confirmed, 'infinity'::float8) as confirmed`,
      from: sql`(${confirmedPage(rows, page)}) o join messages m using (item_hash)`,
      order: confirmedOrder(page),
      hold,
    }),
  );
}
