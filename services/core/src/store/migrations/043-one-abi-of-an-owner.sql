-- Each ABI that an owner declared of a contract was another row, and a look at the chain went through all of them: an owner has one now,
-- which has each event once, what was declared last first. It keeps the place of the owner's first among those of others.
update event_counter set schema_version = 43;
with placed as (
  select contract_id, owner, e.id, row_number() over (partition by contract_id, owner order by version desc, e.place) as place
  from indexer_abis cross join unnest(event_ids) with ordinality as e (id, place)),
ones as (select contract_id, owner, id, min(place) as place from placed group by contract_id, owner, id),
merged as (select contract_id, owner, array_agg(id order by place) as event_ids from ones group by contract_id, owner),
first as (select contract_id, owner, min(version) as version from indexer_abis group by contract_id, owner having count(*) > 1)
update indexer_abis a set event_ids = m.event_ids, added_at = clock_timestamp()
from first f join merged m using (contract_id, owner)
where a.contract_id = f.contract_id and a.version = f.version;
delete from indexer_abis a
using (select contract_id, owner, min(version) as version from indexer_abis group by contract_id, owner having count(*) > 1) f
where a.contract_id = f.contract_id and a.owner = f.owner and a.version > f.version;
-- Who asked for earlier blocks that others had not asked for: each owner has a share of what there is for all. Unknown of those before.
alter table indexer_scans add column owner text;
