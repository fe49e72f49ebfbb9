-- Tags of a POST may also stand in content.content.tags, as deployed nodes read them: such posts are read again, and listed
-- by those as well (intake/judge.ts).
insert into reconsider select item_hash from messages
where type = 'POST' and form = 'envelope' and status = 'processed'
  and jsonb_typeof(content -> 'content' -> 'tags') = 'array'
on conflict do nothing;
-- A store that had a fault, or no room, says nothing of the message.
insert into reconsider select item_hash from messages
where status = 'rejected' and reason ->> 'code' in ('STORAGE_UNAVAILABLE', 'STORAGE_FULL')
on conflict do nothing;
