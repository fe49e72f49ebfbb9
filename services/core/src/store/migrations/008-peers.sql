-- When the first core node took a message, by that node's word, where the message's form leaves something uncovered
-- (protocol/sync/shared.ts): of two nodes' statements the earlier one counts. null: everything is covered.
alter table messages add column noted_ms bigint;
update messages set noted_ms = (extract(epoch from received_at) * 1000)::bigint where form <> 'envelope';

-- How far the bulk transfer from a peer has come: everything before the place was taken. Gone when it is done.
create table sync_transfers (
  peer  text primary key,
  place text not null
);
