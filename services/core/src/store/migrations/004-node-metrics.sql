-- What trusted monitors measured of nodes, for the metrics lookup. Derived from their messages, so it can be made again.
-- Nodes and messages are named by short numbers: a year of a thousand nodes is nine million rows.

-- Whose measurements are in here; follows the setting when the node starts (measurements/publishers.ts).
create table metrics_publishers (address text collate "C" primary key);

create table metrics_messages (
  id        integer generated always as identity primary key,
  item_hash text collate "C" not null unique,
  owner     text collate "C" not null
);
create index metrics_messages_by_owner on metrics_messages (owner);

create table metrics_nodes (
  id      integer generated always as identity primary key,
  kind    text collate "C" not null check (kind in ('core', 'compute')),
  node_id text collate "C" not null,
  unique (kind, node_id)
);

create table node_metrics (
  node                       integer not null,
  message                    integer not null,
  -- The record's place in its message.
  place                      integer not null,
  measured_at                double precision not null,
  asn                        bigint,
  version                    text,
  base_latency               double precision,
  base_latency_ipv4          double precision,
  metrics_latency            double precision,
  aggregate_latency          double precision,
  file_download_latency      double precision,
  txs_total                  double precision,
  pending_messages           double precision,
  eth_height_remaining       double precision,
  diagnostic_vm_latency      double precision,
  full_check_latency         double precision,
  diagnostic_vm_ping_latency double precision,
  primary key (node, measured_at, message, place)
);
