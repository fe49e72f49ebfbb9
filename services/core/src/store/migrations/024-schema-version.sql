-- Who writes reads this under the lock of all who write, so code that is older than a migration writes nothing after it. Each later
-- migration begins by setting it to its own number: what is being written then is complete, and the migration sees it.
alter table event_counter add column schema_version integer not null default 24;
