import { type Kysely, sql } from 'kysely';
import type { StoredMessage } from '../../intake/stored.ts';
import type { Schema } from '../../store/schema.ts';
import {
  type ConfirmedPage,
  confirmedOrder,
  confirmedPage,
  firstConfirmedAt,
} from '../messages/first-confirmation.ts';
import { chooseScans } from './choose.ts';
import { isRepeating, rowsOf } from './driver.ts';
import { isEmpty, resolveFilter } from './filter.ts';
import { weigh } from './messages.ts';
import type { MessageFilter } from './properties.ts';
import { withTimeLimit } from './time-limit.ts';

type ConfirmedMessage = StoredMessage & { readonly confirmed: number | null };

/** Messages in order of their first confirmation. No index has that order: all that fit are sorted. Throws LIST_TOO_COSTLY. */
export async function listByConfirmation(
  db: Kysely<Schema>,
  asked: MessageFilter,
  page: ConfirmedPage,
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
  return withTimeLimit(db, async (on) => {
    const picked = sql`(${confirmedPage(rows, page)}) o join messages m using (item_hash)`;
    await weigh(on, picked, page.limit);
    const query = sql<ConfirmedMessage>`
      select m.*, nullif(o.confirmed, 'infinity'::float8) as confirmed from ${picked} ${confirmedOrder(page)}`;
    return (await query.execute(on)).rows;
  });
}
