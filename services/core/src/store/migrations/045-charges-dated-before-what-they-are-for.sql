-- What was made under a clock that was ahead was thrown out again by its own first charge (state/credits/afford.ts): what was refused for
-- want of credit and had been charged is judged again, so that nodes that refused it hold what nodes do that are sent it now.
update event_counter set schema_version = 45;
insert into reconsider (item_hash)
select m.item_hash from messages m
where m.status = 'rejected' and m.reason ->> 'code' = 'CREDIT_INSUFFICIENT'
  and exists (select from credit_entries e where e.ref = m.item_hash and e.kind = 'expense' and e.counts)
on conflict do nothing;
