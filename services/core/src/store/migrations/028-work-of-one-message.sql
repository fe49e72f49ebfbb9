-- What one message has all others wait for while it is written.
update event_counter set schema_version = 28;
-- A message knows which fields it is in: they are found by their own keys, and nothing else was looked for by element.
drop index aggregate_entries_by_element, aggregate_covered_by_element;
-- Whatever names a post was looked through for its latest amend: any stranger may name it any number of times.
create index messages_amends on messages (subject, "time" desc, item_hash desc)
  where content_type = 'amend' and status = 'processed';
-- What an owner permitted was looked for among all that the owner ever wrote of it. What came late counts since it was noted.
create index messages_security_noted on messages (subject, noted_ms)
  where type = 'AGGREGATE' and noted_ms is not null and subject like E'%\nsecurity';
-- Where much hangs on one key, what of it is still to be put in line: what comes after this hash.
create table reconsider_rest (
  key   text collate "C" primary key,
  after text collate "C" not null
);
-- Elements that are larger than one may be (protocol's whyTooLarge). Text of jsonb is longer than what is measured there.
insert into reconsider select item_hash from messages
where type = 'AGGREGATE' and status = 'processed' and (
  (select count(*) from jsonb_object_keys(content -> 'content')) > 1000
  or (subject like E'%\nsecurity' and length((content -> 'content' -> 'authorizations')::text) > 65536))
on conflict do nothing;
