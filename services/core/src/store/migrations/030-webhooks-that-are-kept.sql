-- Each registration counted all webhooks that anybody had ever deleted, while nothing was planned.
update event_counter set schema_version = 30;
create index webhooks_kept on webhooks (owner, number) where status <> 'deleted';
-- They are forgotten some time.
create index webhooks_deleted on webhooks (updated_ms) where status = 'deleted';
drop index webhooks_by_owner;
