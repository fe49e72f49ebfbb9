-- Credit: what was bought and used, and what things cost (docs/credit.md). Derived from messages, so it can be made again:
-- it is, when the node starts and `credit_derivation` does not say that it was made for the publishers of the setting.

create table credit_derivation (
  id         boolean primary key default true check (id),
  publishers text[] not null,
  -- Whether what an owner has not the credit for is refused.
  enforcement boolean not null
);

-- Whose word on credit counts.
create table credit_publishers (address text collate "C" primary key);

-- Everything that costs something for as long as its message is in force.
create table credit_resources (
  item_hash text collate "C" primary key,
  owner     text collate "C" not null,
  kind      text collate "C" not null check (kind in ('instance', 'program', 'storage')),
  created   double precision not null,
  units     bigint not null,
  mib       bigint not null
);
create index credit_resources_by_owner on credit_resources (owner, created, item_hash);
create index credit_resources_by_kind  on credit_resources (kind, created, item_hash);

-- Billionths of a credit per second, from a second on.
create table credit_prices (
  kind         text collate "C" not null,
  from_time    bigint not null,
  compute_unit numeric not null,
  storage_mib  numeric not null,
  primary key (kind, from_time)
);
create view credit_price_steps as
  select kind, from_time, compute_unit, storage_mib,
    lead(from_time::double precision, 1, 'infinity') over (partition by kind order by from_time) as until_time
  from credit_prices;

-- Lines of publishers. Of several with one key the first by (time, item hash, place) counts.
create table credit_entries (
  item_hash text collate "C" not null,
  place     integer not null,
  key       text collate "C" not null,
  kind      text collate "C" not null check (kind in ('purchase', 'expense')),
  owner     text collate "C" not null,
  -- Billionths of a credit; below zero for what was used.
  nano      numeric not null,
  ref       text collate "C" not null,
  "time"    double precision not null,
  counts    boolean not null default false,
  primary key (item_hash, place)
);
create index credit_entries_by_key   on credit_entries (key, "time", item_hash, place);
create index credit_entries_by_owner on credit_entries (owner, "time", item_hash, place) include (nano) where counts;
create index credit_entries_by_ref   on credit_entries (ref) include (nano) where counts;

-- What publishers announced of an owner's credit.
create table credit_notices (
  item_hash   text collate "C" primary key,
  owner       text collate "C" not null,
  state       text collate "C" not null,
  credits     bigint not null,
  runs_out_at bigint,
  "time"      double precision not null
);
create index credit_notices_by_owner on credit_notices (owner, "time" desc, item_hash desc);
