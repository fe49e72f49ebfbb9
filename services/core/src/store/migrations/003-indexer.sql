-- Indexed chains (docs/indexer.md). Events and transactions of network N are in indexer_events_nN and
-- indexer_transactions_nN, partitioned by block range; the indexer makes those tables (indexer/store/partitions.ts).
create table indexer_networks (
  id               integer generated always as identity primary key,
  name             text not null unique,
  chain_id         bigint not null,
  genesis_hash     text,
  -- The last block of the window, from which the chain is followed; null before the first look.
  tip_number       bigint,
  tip_hash         text,
  -- At or below it nothing is ever rewritten.
  floor_number     bigint not null default -1,
  finalized_number bigint,
  head_number      bigint,
  head_timestamp   bigint,
  -- Counts the reorganisations that were undone.
  undo_seq         bigint not null default 0,
  halt_code        text,
  halt_message     text,
  progress_at      timestamptz not null default now(),
  requests         bigint not null default 0
);

-- The blocks from the floor to the tip: what a reorganisation is recognised by.
create table indexer_blocks (
  network_id  integer not null references indexer_networks (id) on delete cascade,
  number      bigint not null,
  hash        text not null,
  parent_hash text not null,
  "timestamp" bigint not null,
  bloom       text not null,
  primary key (network_id, number)
);

create table indexer_undos (
  network_id integer not null references indexer_networks (id) on delete cascade,
  seq        bigint not null,
  -- The last block that stood.
  ancestor   bigint not null,
  depth      bigint not null,
  undone_at  timestamptz not null default now(),
  primary key (network_id, seq)
);

create table indexer_contracts (
  id         integer generated always as identity primary key,
  network_id integer not null references indexer_networks (id) on delete cascade,
  address    text not null,
  -- Nobody asks for it any more; its rows are being deleted.
  removed    boolean not null default false,
  unique (network_id, address)
);

-- One row for each distinct declaration, names of parameters included.
create table indexer_event_types (
  id          integer generated always as identity primary key,
  declaration text not null unique,
  name        text not null,
  signature   text not null,
  definition  jsonb not null
);
create index indexer_event_types_by_name on indexer_event_types (name);
create index indexer_event_types_by_signature on indexer_event_types (signature);

-- ABIs as they were given, newest version last; a contract may have several (a proxy and what is behind it).
create table indexer_abis (
  contract_id integer not null references indexer_contracts (id) on delete cascade,
  version     integer not null,
  owner       text not null,
  event_ids   integer[] not null,
  added_at    timestamptz not null default now(),
  primary key (contract_id, version)
);

-- Who asks for a contract, from which block on.
create table indexer_watches (
  contract_id  integer not null references indexer_contracts (id) on delete cascade,
  owner        text not null,
  start_block  bigint not null,
  transactions boolean not null,
  primary key (contract_id, owner)
);
create index indexer_watches_by_owner on indexer_watches (owner);

-- What is read from the chain: logs of a contract with some first topics ('*': those that have none of the declared
-- ones), or its transactions. No two scans of a contract overlap in topic and block.
create table indexer_scans (
  id          integer generated always as identity primary key,
  network_id  integer not null references indexer_networks (id) on delete cascade,
  contract_id integer not null references indexer_contracts (id) on delete cascade,
  kind        text not null,
  topics      text[] not null,
  from_block  bigint not null,
  next_block  bigint not null,
  to_block    bigint,
  -- Follows the tip: everything from from_block to the tip is read.
  live        boolean not null default false
);
create index indexer_scans_by_network on indexer_scans (network_id);

-- How many rows there are, for stretches of blocks: totals are added up and not counted.
-- contract_id 0 and event_id 0 stand for transactions.
create table indexer_spans (
  network_id     integer not null references indexer_networks (id) on delete cascade,
  contract_id    integer not null,
  event_id       integer not null,
  from_block     bigint not null,
  to_block       bigint not null,
  from_timestamp bigint not null,
  to_timestamp   bigint not null,
  rows           bigint not null,
  primary key (network_id, contract_id, event_id, from_block)
);
create index indexer_spans_by_block on indexer_spans (network_id, to_block);

-- How far the event log was read for signed wishes (POST net-index).
create table indexer_posts (
  id     boolean primary key default true check (id),
  cursor text not null
);

-- indexed: the partition has the indexes for queries; a backfill makes them once it has filled the partition.
create table indexer_partitions (
  network_id integer not null references indexer_networks (id) on delete cascade,
  name       text not null,
  kind       text not null,
  from_block bigint not null,
  to_block   bigint not null,
  indexed    boolean not null,
  primary key (network_id, kind, from_block)
);
