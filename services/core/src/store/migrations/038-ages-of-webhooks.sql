-- The time by which ages of webhooks are told, as it was read last, and how long and by how much at least the clock had been ahead of it
-- by then: a process that starts under a clock that is ahead went by that at once.
update event_counter set schema_version = 38;
create table webhook_clock (
  id       boolean primary key default true check (id),
  aged_ms  bigint not null,
  ahead_ms bigint not null,
  lead_ms  bigint not null
);
