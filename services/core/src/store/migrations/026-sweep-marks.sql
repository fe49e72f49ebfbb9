update event_counter set schema_version = 26;
-- The last two words that the sweep of this database has left in the object store (docs/storage.md).
create table sweep_marks (
  id boolean primary key default true check (id),
  word text not null,
  before text
);
