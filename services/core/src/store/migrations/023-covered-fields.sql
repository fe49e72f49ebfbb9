-- Fields of an aggregate's elements that a later element has, too: each takes its place again when those above it are forgotten. To look for
-- them in the messages took as long as all elements of the aggregate are large, for each field: a FORGET of one stopped a node.
create table aggregate_covered (
  owner     text collate "C" not null,
  key       text collate "C" not null,
  field     text collate "C" not null,
  value     jsonb not null,
  "time"    double precision not null,
  item_hash text collate "C" not null,
  primary key (owner, key, field, "time", item_hash)
);
create index aggregate_covered_by_element on aggregate_covered (item_hash);
insert into aggregate_covered (owner, key, field, value, "time", item_hash)
  select m.owner, m.content ->> 'key', f.key, f.value, m."time", m.item_hash
  from messages m cross join lateral jsonb_each(m.content -> 'content') f
  where m.status = 'processed' and m.type = 'AGGREGATE' and not exists (
    select from aggregate_entries e
    where e.owner = m.owner and e.key = m.content ->> 'key' and e.field = f.key and e.item_hash = m.item_hash);
