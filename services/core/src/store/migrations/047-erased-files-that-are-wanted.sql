-- What came as a file and was erased is looked for like other files, once no FORGET in force names its message (docs/peers.md): that hangs on it.
update event_counter set schema_version = 47;
insert into dependencies (key, item_hash)
select 'file:' || item_hash, item_hash from messages where erased = 'wanted' and form = 'network'
on conflict do nothing;
create index messages_wanted on messages ((settled_at_ms::float8 / 1000) desc, item_hash) where erased = 'wanted' and form = 'network';
