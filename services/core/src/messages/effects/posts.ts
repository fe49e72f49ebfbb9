import { sql } from 'kysely';
import type { Effect, EffectWriter, Writing } from './effect.ts';

export const writePosts: EffectWriter<'post'> = async (effects, { trx }) => {
  const gone = effects.filter((effect) => effect.undo).map((effect) => effect.accepted.message.itemHash);
  if (gone.length > 0) await trx.deleteFrom('posts').where('item_hash', 'in', gone).execute();
  const made = effects.filter((effect) => !effect.undo);
  if (made.length === 0) return;
  const column = <T>(read: (effect: Effect<'post'>) => T) => made.map(read);
  // Tags go as JSON: an array of arrays must be a rectangle.
  await sql`
    insert into posts (item_hash, owner, type, ref, channel, tags, created, updated, latest_hash)
    select item_hash, owner, type, ref, channel, array(select jsonb_array_elements_text(tags)), time, time, item_hash
    from unnest(
      ${column(({ accepted }) => accepted.message.itemHash)}::text[], ${column(({ accepted }) => accepted.owner)}::text[],
      ${column(({ accepted }) => accepted.contentType)}::text[], ${column(({ change }) => change.ref)}::text[],
      ${column(({ accepted }) => accepted.message.channel)}::text[],
      ${column(({ accepted }) => JSON.stringify(accepted.tags))}::jsonb[],
      ${column(({ accepted }) => accepted.message.time)}::float8[])
      as made (item_hash, owner, type, ref, channel, tags, time)
    on conflict do nothing`.execute(trx);
  // An amend is decided when its post is there, so none can have come before it.
};

/** The latest of a post's amends takes its place; where none is left, the post stands for itself again. */
async function settleLatest({ trx }: Writing, originals: readonly string[]): Promise<void> {
  await sql`
    update posts set latest_hash = coalesce(latest.item_hash, posts.item_hash),
      updated = coalesce(latest."time", posts.created)
    from unnest(${originals}::text[]) as touched (item_hash)
    left join lateral (
      select item_hash, "time" from messages
      where subject = touched.item_hash and type = 'POST' and content_type = 'amend' and status = 'processed'
      order by "time" desc, item_hash desc limit 1
    ) latest on true
    where posts.item_hash = touched.item_hash`.execute(trx);
}

export const writeAmends: EffectWriter<'amend'> = async (effects, writing) => {
  if (effects.length > 0)
    await settleLatest(writing, [...new Set(effects.map(({ change }) => change.original))]);
};
