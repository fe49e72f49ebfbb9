-- A message keeps what it names. The content of a STORE that is a file was taken for the file that the STORE keeps, and swept a day later;
-- which file a program kept hung on which message was here first.
update event_counter set schema_version = 27;
insert into file_pins (file_hash, message_hash, owner)
  select item_hash, item_hash, owner from messages
  where form = 'network' and source_text is null and content is not null and type = 'STORE' and status = 'processed'
  on conflict do nothing;
update file_pins p set file_hash = g.content -> 'code' ->> 'ref'
  from programs g
  where g.program_hash = p.message_hash and g.content -> 'code' ->> 'kind' = 'file' and p.file_hash <> p.message_hash;
