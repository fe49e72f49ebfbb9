-- Blobs that the sweep has found to be kept by nobody, a while before it removes them: whoever stores the same bytes meanwhile, in any
-- process, takes them off this list first (docs/storage.md).
create table doomed_blobs (
  hash text primary key,
  -- Milliseconds since 1970, by the clock of the process that sweeps.
  doomed_ms bigint not null
);
