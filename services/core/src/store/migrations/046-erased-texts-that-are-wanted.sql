-- A text that was erased, and whose FORGET turns out not to hold, is wanted: the node asks for it by another key of its set (docs/peers.md).
-- And what was erased of the network form is told from what came as a file. Of what was rejected in that form nobody can tell it any more.
update event_counter set schema_version = 46;
alter table messages add column erased text constraint messages_erased check (erased in ('forgotten', 'wanted'));
update messages set erased = case when exists (select from forgets where target = item_hash) then 'forgotten' else 'wanted' end
where content is null and (status = 'forgotten' or (status = 'rejected' and source_text is null and form <> 'network'));
