-- What lists as deployed clients ask for them are read from.

-- Lists of messages that are not in force (state/lists/driver.ts): few messages are, so the index costs little.
create index messages_by_status on messages (status, "time" desc, item_hash)
  where status <> 'processed' and item_hash <> 'messages_by_status';

-- An owner's files.
create index file_pins_by_owner on file_pins (owner);
-- Who is named in permissions: all owners that name an address are found by it.
create index aggregate_entries_authorizations on aggregate_entries using gin (value jsonb_path_ops)
  where key = 'security' and field = 'authorizations';

-- The time beside a content of the network form, which deployed clients are shown; null where it is the content's own.
alter table messages add column sent_time double precision;
