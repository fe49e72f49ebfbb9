-- A restriction that was misspelt restricted nothing: an entry that is not understood permits nothing now (protocol's permissions.ts).
update event_counter set schema_version = 31;
-- What delegates of such owners did is judged again.
insert into reconsider
select m.item_hash from messages m
where m.owner <> m.sender and m.status = 'processed' and m.owner in (
  select f.owner from (
    select owner, value from aggregate_entries where key = 'security' and field = 'authorizations'
    union all select owner, value from aggregate_covered where key = 'security' and field = 'authorizations') f
  cross join lateral jsonb_array_elements(case when jsonb_typeof(f.value) = 'array' then f.value else '[]' end) as e (entry)
  where jsonb_typeof(e.entry) = 'object' and (
    jsonb_path_exists(e.entry, '$.*[*] ? (@.type() != "string")')
    or (e.entry - array['address', 'chain', 'channels', 'types', 'post_types', 'aggregate_keys']) <> '{}'))
on conflict do nothing;
