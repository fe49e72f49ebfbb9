-- A stop for lack of credit counts by its own date (state/credits/afford.ts): one that came late was judged by what its owner had paid by
-- then. Those are judged again, so that nodes that have them hold what nodes do that are sent them now.
update event_counter set schema_version = 51;
insert into reconsider (item_hash)
select item_hash from messages
where type = 'INSTANCE_CONTROL' and status in ('processed', 'rejected') and noted_ms > ("time" + 600) * 1000
  and sender in (select address from credit_publishers)
on conflict do nothing;
