-- Dates that a sender chose (docs/architecture.md, "Dates"): from here on noted_ms is also kept of an envelope that came
-- late. What was stored before counts as on time, since nobody knows better.
update messages set noted_ms = greatest(0, floor("time" * 1000))::bigint where noted_ms > ("time" + 600) * 1000;

-- Since when an instance counts against others, and the first allocation that gave it an address. The scheduler whose
-- allocation holds is one that the node trusts.
alter table instances add column effective_at bigint;
update instances set effective_at = created_at, stamps = stamps || jsonb_build_object('address', (
  select jsonb_build_array((m.content -> 'content' -> 'decided_at_ms'), m.item_hash)
  from messages latest join messages m on m.subject = latest.subject and m.type = 'POST'
    and m.content_type = latest.content_type and m.sender = latest.sender and m.status = 'processed'
  where latest.item_hash = stamps -> 'allocation' ->> 1 and m.content -> 'content' ->> 'ipv6' <> ''
  order by (m.content -> 'content' ->> 'decided_at_ms')::bigint, m.item_hash limit 1));
alter table instances alter column effective_at set not null;

-- When the block was made, Unix seconds; null of events that were read before. Once it cannot change any more, what the
-- event confirms was there by then.
alter table anchor_events add column block_time bigint;
alter table anchor_events add column dated boolean not null default false;
update anchor_events set dated = true;
create index anchor_events_undated on anchor_events (network, block_number)
  where state = 'processed' and not dated and block_time is not null;
