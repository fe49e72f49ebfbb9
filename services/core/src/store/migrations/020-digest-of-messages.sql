-- The digest of all messages is locked with the number of the last event, so it has a row from the beginning: an empty set's.
insert into digests (name, sum, count) values ('messages', repeat('0', 64), 0) on conflict do nothing;
