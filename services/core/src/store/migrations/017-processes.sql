-- The processes of the node on this database, and which of them does what one alone may do (docs/roles.md). Times are the
-- database's: clocks of machines differ.
create table processes (
  id uuid primary key,
  host text not null,
  pid integer not null,
  roles text[] not null,
  -- What all of them have in common, each as a fingerprint: keys, where files are.
  identity jsonb not null,
  started_at timestamptz not null default clock_timestamp(),
  seen_at timestamptz not null default clock_timestamp()
);

create table leases (
  name text primary key,
  holder uuid not null,
  until timestamptz not null
);
