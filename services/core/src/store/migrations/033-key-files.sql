-- By which keys the node works that has this database (node/key-files.ts). Fingerprints give nothing away.
update event_counter set schema_version = 33;
create table key_files (
  name        text primary key,
  fingerprint text not null,
  noted_at    timestamptz not null default now()
);
