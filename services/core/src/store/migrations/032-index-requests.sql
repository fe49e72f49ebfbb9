-- What became of signed requests to index contracts (chains/index-requests.ts).
update event_counter set schema_version = 32;
create table indexer_requests (
  item_hash  text primary key,
  owner      text not null,
  -- Why it was refused; null where it was done.
  code       text,
  message    text,
  settled_ms bigint not null
);
create index indexer_requests_by_owner on indexer_requests (owner, settled_ms desc, item_hash);
create index indexer_requests_by_time on indexer_requests (settled_ms);
