update event_counter set schema_version = 25;
-- On which timeline of the database the last event was given its number. Each promotion of a standby and each recovery from an archive
-- begins another one, and may lack events whose numbers readers remember (docs/peers.md).
alter table event_counter add column timeline text not null default substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
