-- A dump that is restored begins on the timeline that it was taken on, in another cluster or as other tables: where the database runs is
-- told by all three (write-lock.ts). Of a database that has events nobody knows whether it was restored before: it passes over numbers once.
update event_counter set schema_version = 50;
alter table event_counter alter column timeline drop default;
update event_counter set timeline = concat_ws('-',
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8),
  (pg_control_system()).system_identifier,
  'event_counter'::regclass::oid)
where last_seq = 0;
