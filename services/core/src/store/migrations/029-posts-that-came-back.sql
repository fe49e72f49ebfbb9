-- A post that came back while its amends stayed as they were stood for itself from then on.
update event_counter set schema_version = 29;
insert into amended_posts (item_hash, owner, type, ref, channel, tags, updated, latest_hash)
select o.item_hash, o.owner, o.content_type, o.subject, o.channel, o.tags, latest."time", latest.item_hash
from (
  select distinct on (subject) subject, "time", item_hash from messages
  where content_type = 'amend' and status = 'processed' order by subject, "time" desc, item_hash desc) latest
join messages o on o.item_hash = latest.subject and o.status = 'processed'
on conflict do nothing;
