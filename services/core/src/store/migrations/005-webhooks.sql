-- Deliveries of events to webhooks. A webhook has a short number, which stands in each of its deliveries.
alter table webhooks
  add column number integer generated always as identity unique,
  add column filters jsonb not null default '{}',
  add column concurrency integer not null default 8,
  -- active; paused by its owner or after it failed for long; disabled by its endpoint (410); deleted: only the id is
  -- kept, so that the signed registration cannot be played again.
  add column status text not null default 'active'
    check (status in ('active', 'paused', 'disabled', 'deleted')),
  add column reason jsonb,
  add column old_secret bytea,
  add column old_secret_until_ms bigint,
  -- Events after this number were not planned for it yet: it is new, was paused, or has too many deliveries waiting.
  add column behind_seq bigint,
  add column failing_since_ms bigint,
  -- Its endpoint asked to be left alone until then.
  add column hold_until_ms bigint not null default 0,
  add column delivered_ms bigint,
  add column updated_ms bigint not null default 0,
  add column version bigint not null default 0;
create index webhooks_by_version on webhooks (version);
update webhooks set behind_seq = (select last_seq from event_counter);
create index webhooks_behind on webhooks (number) where behind_seq is not null and status = 'active';
create index webhooks_failing on webhooks (failing_since_ms)
  where failing_since_ms is not null and status = 'active';

-- How far events are planned; its lock makes planning, and changes of webhooks, one after another. `version` grows with
-- every change of a webhook that planners and deliverers must know of.
create table webhook_planner (
  id       boolean primary key default true check (id),
  last_seq bigint not null,
  version  bigint not null default 0
);
insert into webhook_planner (last_seq) select last_seq from event_counter;

-- One row for an event and a webhook. A row that somebody works on is due again when the lease ends: a killed node loses
-- nothing. Tests have negative numbers; they are no events of the log.
create table webhook_deliveries (
  webhook     integer not null,
  seq         bigint not null,
  event       text not null,
  state       text not null default 'waiting' check (state in ('waiting', 'delivered', 'dead')),
  attempts    integer not null default 0,
  due_ms      bigint not null,
  planned_ms  bigint not null,
  settled_ms  bigint,
  log         jsonb not null default '[]',
  primary key (webhook, seq)
);
create index webhook_deliveries_due on webhook_deliveries (webhook, due_ms, seq) where state = 'waiting';
create index webhook_deliveries_settled on webhook_deliveries (settled_ms) where state <> 'waiting';
create sequence webhook_tests;

-- Replays of a range, done bit by bit.
create table webhook_replays (
  id       bigint generated always as identity primary key,
  webhook  integer not null,
  next_seq bigint not null,
  last_seq bigint not null
);

-- Signed requests of owners that were carried out, for as long as one could be sent again.
create table webhook_requests (
  item_hash text collate "C" primary key,
  time_ms   bigint not null
);
create index webhook_requests_by_time on webhook_requests (time_ms);

-- The event before, of the same instance: what changed.
create index events_by_instance on events ((data ->> 'instance_id'), seq) where kind = 'instance';
