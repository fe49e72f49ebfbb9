-- Whoever asked for an anchoring contract first named the values of its events: nodes took something else for the emitter or for what
-- an event says, or found none, and refused all of them. They are read once more; what is refused rightly is refused again.
update event_counter set schema_version = 37;
with gone as (
  delete from anchor_events
  where state = 'refused' and (emitter !~ '^0x[0-9a-f]{40}$' or cid is null and reason ->> 'code' = 'ARCHIVE_INVALID')
  returning network, block_number)
update anchor_networks n set settled_block = least(settled_block, first - 1)
from (select network, min(block_number) as first from gone group by network) g where g.network = n.network;
