-- A name for what was read of a chain since reading began at nothing, the last time: whoever follows a contract sees by it that what
-- was final is read anew, since an endpoint had lied. What was followed so far was of the reading that there is, also where the chain has halted.
update event_counter set schema_version = 40;
alter table indexer_networks add column reading uuid not null default gen_random_uuid();
alter table anchor_networks add column reading uuid;
update anchor_networks a set reading = n.reading from indexer_networks n where n.name = a.network;
