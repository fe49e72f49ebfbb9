-- Programs that run without being called were found by looking into every program's content, at most once a second; and the first of them
-- were those that their senders dated first. `standing` is what a compute node has to know of one (state/programs/standing.ts), null of the
-- others; `effective` when its message counts from, Unix seconds (docs/messages.md, "Dates").
update event_counter set schema_version = 41;
alter table programs add column effective double precision, add column standing json;
update programs p set
  effective = case when m.noted_ms > (m."time" + 600) * 1000 then m.noted_ms / 1000.0 else m."time" end,
  standing = case
    when m.content -> 'on' -> 'persistent' = 'true'::jsonb or jsonb_typeof(m.content -> 'on' -> 'message') = 'array' then
      json_build_object(
        'runtime', p.content -> 'runtime',
        'isPersistent', m.content -> 'on' -> 'persistent' is not distinct from 'true'::jsonb,
        'isTriggered', jsonb_typeof(m.content -> 'on' -> 'message') is not distinct from 'array',
        'filters', case
          when jsonb_typeof(m.content -> 'on' -> 'message') = 'array' and octet_length((m.content -> 'on' -> 'message')::text) <= 16384
          then m.content -> 'on' -> 'message' else '[]' end)
    end
  from messages m where m.item_hash = p.program_hash;
alter table programs alter column effective set not null;
create index programs_standing on programs (owner, effective, program_hash) where standing is not null;
