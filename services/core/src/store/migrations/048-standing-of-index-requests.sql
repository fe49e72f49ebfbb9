-- What was asked for by owners who had credit is told from what strangers asked for, who have half of what there is for all. Of what was
-- asked for before nobody knows: it is strangers' until its owner asks again.
update event_counter set schema_version = 48;
alter table indexer_watches add column standing boolean not null default false;
alter table indexer_abis add column standing boolean not null default false;
alter table indexer_scans add column standing boolean not null default false;
