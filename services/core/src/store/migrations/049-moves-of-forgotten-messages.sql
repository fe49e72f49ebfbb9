-- Nodes compare which messages are forgotten beside which they have (docs/peers.md): processes tell each other what moved among these, too.
update event_counter set schema_version = 49;
alter table set_changes add column forgotten bytea;
