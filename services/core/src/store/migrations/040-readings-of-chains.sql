-- A name for what was read of a chain since reading began at nothing, the last time: whoever follows a contract sees by it that what
-- was final is read anew, since an endpoint had lied. Null until the next look, which takes the one that is there for the one that was followed.
update event_counter set schema_version = 40;
alter table indexer_networks add column reading uuid not null default gen_random_uuid();
alter table anchor_networks add column reading uuid;
