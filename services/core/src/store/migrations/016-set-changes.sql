-- What each batch did to the set of messages, so that every process on this database follows it, and so that a process
-- notices when a database comes back without what it had said was durable (docs/peers.md). Rows are few: what all
-- processes have read is deleted.
create table set_changes (
  seq bigint primary key,
  -- Chosen at random for each row; the next row repeats it. Numbers alone would not tell one history from another.
  mark uuid not null,
  after uuid,
  moves bytea not null,
  -- The number of the last event, with those of this batch.
  last_event bigint not null,
  written_at timestamptz not null default now()
);
