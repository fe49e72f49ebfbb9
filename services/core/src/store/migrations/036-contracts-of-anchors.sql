-- Which contract a network's events are of, and from which block on: another one, or an earlier start, was not read before what is
-- settled. Null until the next look, which takes what the settings say for what was followed.
update event_counter set schema_version = 36;
alter table anchor_networks add column contract text;
alter table anchor_networks add column start_block bigint;
