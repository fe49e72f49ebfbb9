import { sql } from 'kysely';
import { Effect, hashOf } from '../effect.ts';

/**
 * The latest of a post's amends, by time, takes the place of its content; without any, the post stands for itself. It follows from
 * the post as well as from its amends: a post may come back while they stay as they are.
 */
export const amendEffect = new Effect<{ readonly original: string }>({
  compared: { part: 'posts', rows: sql`select to_jsonb(p)::text as r from amended_posts p` },
  // One at most: the number of messages in a batch bounds it.
  rowsOf: () => 0,
  async write(steps, { trx }) {
    const isUnamended = (step: (typeof steps)[number]) => step.isNew && step.data.original === hashOf(step);
    const originals = [
      ...new Set(steps.filter((step) => !isUnamended(step)).map(({ data }) => data.original)),
    ];
    if (originals.length === 0) return;
    await sql`
    with touched as (select * from unnest(${originals}::text[]) as t (item_hash)),
    settled as (
      select o.item_hash, o.owner, o.content_type, o.subject, o.channel, o.tags, latest."time", latest.item_hash as latest_hash
      from touched join messages o using (item_hash)
      cross join lateral (
        select item_hash, "time" from messages
        where subject = touched.item_hash and type = 'POST' and content_type = 'amend' and status = 'processed'
        order by "time" desc, item_hash desc limit 1
      ) latest
      where o.status = 'processed'
    ), unamended as (
      delete from amended_posts p using touched t
      where p.item_hash = t.item_hash and not exists (select from settled s where s.item_hash = t.item_hash)
    )
    insert into amended_posts (item_hash, owner, type, ref, channel, tags, updated, latest_hash)
    select item_hash, owner, content_type, subject, channel, tags, "time", latest_hash from settled
    on conflict (item_hash) do update set updated = excluded.updated, latest_hash = excluded.latest_hash`.execute(
      trx,
    );
  },
});
