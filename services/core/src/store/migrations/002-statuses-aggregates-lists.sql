-- Every known message has a status and a reason, whatever became of it. What follows from messages (instances, pins,
-- aggregates, ...) can be derived again, so it is emptied here and every message is put in line to be decided anew.

alter table instances drop constraint instances_instance_id_fkey;
alter table file_pins drop constraint file_pins_file_hash_fkey;
alter table file_pins drop constraint file_pins_message_hash_fkey;
truncate instances, file_pins;
create index instances_not_running on instances (created_at desc, instance_id) where phase <> 'running';
create index instances_by_owner_running on instances (owner, created_at desc, instance_id) where phase = 'running';
create index instances_by_owner_not_running on instances (owner, created_at desc, instance_id)
  where phase <> 'running';

drop index messages_by_time, messages_by_sender, messages_by_type, messages_by_channel, messages_instance_status;
alter table messages rename column "timestamp" to "time";
alter table messages rename column signed_text to source_text;
alter table messages rename column post_type to content_type;
-- One order of texts on every node, whatever the server's locale: lists and folds settle equal times by it.
alter table messages
  alter column item_hash type text collate "C",
  alter column sender type text collate "C",
  alter column type type text collate "C",
  alter column channel type text collate "C",
  alter column channel drop not null,
  alter column content_type type text collate "C",
  alter column "time" type double precision,
  alter column source_text drop not null,
  alter column content drop not null,
  add column form text,
  add column signed_sender text,
  add column owner text collate "C",
  add column subject text collate "C",
  add column tags text[],
  add column shape integer,
  add column status text,
  add column reason jsonb,
  add column decide_by_ms bigint,
  add column settled_at_ms bigint;
update messages set
  form = case when source_text like '{%' then 'envelope' else 'upload' end,
  owner = sender, tags = '{}', status = 'pending', decide_by_ms = 9007199254740991,
  settled_at_ms = 0;
alter table messages
  alter column form set not null,
  alter column owner set not null,
  alter column tags set not null,
  alter column status set not null,
  alter column decide_by_ms set not null,
  alter column settled_at_ms set not null,
  add constraint messages_status check (status in ('pending', 'processed', 'rejected', 'forgotten'));

-- Lists show processed messages, newest first. Each pair of documented filters has an index that holds its messages in
-- order of time (lists/driver.ts). `type` has few values, so that an index that has it in the middle also serves lists
-- without it: one short scan per type, merged.
--
-- No item hash is the name of an index: that condition holds for every row, and an index can serve only a query that has
-- it. So the query says which index it means (lists/driver.ts). Left to choose, the planner takes equal chances where
-- it expects few rows of a value that has millions.
create index messages_by_time on messages ("time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_time';
create index messages_by_type on messages (type, "time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_type';
create index messages_by_sender on messages (sender, type, "time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_sender';
create index messages_by_channel on messages (channel, type, "time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_channel';
create index messages_by_sender_channel on messages (sender, channel, type, "time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_sender_channel';
create index messages_by_content_type on messages (content_type, "time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_content_type' and content_type is not null;
create index messages_by_shape on messages (shape, "time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_shape';
create index messages_by_sender_shape on messages (sender, shape, "time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_sender_shape';
create index messages_by_channel_shape on messages (channel, shape, "time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_channel_shape';
-- Nearly always the owner is the sender: then the sender's index serves.
create index messages_by_owner on messages (owner, "time" desc, item_hash)
  where status = 'processed' and item_hash <> 'messages_by_owner' and owner <> sender;
-- What speaks of one thing: the updates of an instance, the elements of an aggregate, the amends of a post.
create index messages_by_subject on messages (subject, type, "time" desc, item_hash)
  where status = 'processed' and subject is not null;
create index messages_pending on messages (decide_by_ms) where status = 'pending';
create index messages_to_erase on messages (settled_at_ms) where status = 'forgotten' and content is not null;

create table message_tags (
  item_hash text collate "C" not null,
  tag       text collate "C" not null,
  type      text collate "C" not null,
  sender    text collate "C" not null,
  channel   text collate "C",
  shape     integer,
  "time"    double precision not null,
  primary key (item_hash, tag)
);
create index message_tags_by_tag on message_tags (tag, type, "time" desc, item_hash) where item_hash <> 'message_tags_by_tag';
create index message_tags_by_sender on message_tags (tag, sender, type, "time" desc, item_hash) where item_hash <> 'message_tags_by_sender';
create index message_tags_by_channel on message_tags (tag, channel, type, "time" desc, item_hash) where item_hash <> 'message_tags_by_channel';
create index message_tags_by_shape on message_tags (tag, shape, "time" desc, item_hash) where item_hash <> 'message_tags_by_shape';

-- A shape is the set of paths that a content has, with the type of the message and of its content. Contents of one
-- application have few shapes, so `content.keys` finds the shapes that have the path, and their messages in order of time.
create table shapes (
  id           integer generated always as identity primary key,
  digest       text collate "C" not null unique,
  type         text collate "C" not null,
  content_type text collate "C",
  paths        text[] not null
);
create index shapes_by_path on shapes using gin (paths);
create index shapes_by_content_type on shapes (content_type, type);

-- Totals of lists, kept instead of counted (lists/totals.ts).
create table totals (
  a     text collate "C" not null,
  b     text collate "C" not null,
  total bigint not null,
  heavy boolean not null default false,
  primary key (a, b)
);

-- What a verdict hangs on: 'message:<hash>', 'file:<hash>', 'security:<owner>'. When that changes, the message is
-- put into `reconsider`, in the same transaction, and decided again after it.
create table dependencies (
  key       text collate "C" not null,
  item_hash text collate "C" not null,
  primary key (key, item_hash)
);
create index dependencies_by_message on dependencies (item_hash);
create table reconsider (item_hash text collate "C" primary key);
insert into reconsider select item_hash from messages;

-- Which FORGET messages name a message.
create table forgets (
  target      text collate "C" not null,
  forget_hash text collate "C" not null,
  primary key (target, forget_hash)
);

-- Aggregates: one row for each top-level field, which belongs to the latest element that has it.
create table aggregates (
  owner     text collate "C" not null,
  key       text collate "C" not null,
  created   double precision not null,
  "time"    double precision not null,
  item_hash text collate "C" not null,
  primary key (owner, key)
);
create index aggregates_by_time on aggregates ("time" desc, owner, key);
create index aggregates_by_owner on aggregates (owner, "time" desc, key);
create index aggregates_by_key on aggregates (key, "time" desc, owner);
create table aggregate_entries (
  owner     text collate "C" not null,
  key       text collate "C" not null,
  field     text collate "C" not null,
  value     jsonb not null,
  "time"    double precision not null,
  item_hash text collate "C" not null,
  primary key (owner, key, field)
);
create index aggregate_entries_by_field on aggregate_entries (field, key, owner);
create index aggregate_entries_by_element on aggregate_entries (item_hash);

-- How many aggregates there are: all (kind a), with a key (k), with a field (f), with both (b). Kept by the tables
-- themselves, whatever writes them.
create table aggregate_totals (
  kind  text collate "C" not null,
  key   text collate "C" not null,
  field text collate "C" not null,
  total bigint not null,
  primary key (kind, key, field)
);
create function count_aggregates() returns trigger language plpgsql as $$
declare step integer := case tg_op when 'INSERT' then 1 else -1 end;
begin
  insert into aggregate_totals as t (kind, key, field, total)
    select 'a', '', '', step * count(*) from changed having count(*) > 0
    union all select 'k', key, '', step * count(*) from changed group by key
    order by 1, 2
    on conflict (kind, key, field) do update set total = t.total + excluded.total;
  return null;
end $$;
create function count_aggregate_entries() returns trigger language plpgsql as $$
declare step integer := case tg_op when 'INSERT' then 1 else -1 end;
begin
  insert into aggregate_totals as t (kind, key, field, total)
    select 'b', key, field, step * count(*) from changed group by key, field
    union all select 'f', '', field, step * count(*) from changed group by field
    order by 1, 2, 3
    on conflict (kind, key, field) do update set total = t.total + excluded.total;
  return null;
end $$;
create trigger aggregates_made after insert on aggregates
  referencing new table as changed for each statement execute function count_aggregates();
create trigger aggregates_gone after delete on aggregates
  referencing old table as changed for each statement execute function count_aggregates();
create trigger aggregate_entries_made after insert on aggregate_entries
  referencing new table as changed for each statement execute function count_aggregate_entries();
create trigger aggregate_entries_gone after delete on aggregate_entries
  referencing old table as changed for each statement execute function count_aggregate_entries();

-- Posts that were amended, with the latest of their amends; all others stand for themselves among the messages.
create table amended_posts (
  item_hash   text collate "C" primary key,
  owner       text collate "C" not null,
  type        text collate "C" not null,
  ref         text collate "C",
  channel     text collate "C",
  tags        text[] not null,
  updated     double precision not null,
  latest_hash text collate "C" not null
);
create index amended_posts_by_time on amended_posts (updated desc, item_hash);
create index amended_posts_by_owner on amended_posts (owner, updated desc, item_hash);
create index amended_posts_by_type on amended_posts (type, updated desc, item_hash);
create index amended_posts_by_ref on amended_posts (ref, updated desc, item_hash) where ref is not null;

create table programs (
  program_hash text collate "C" primary key,
  owner        text collate "C" not null,
  content      jsonb not null,
  created      double precision not null
);
create index programs_by_owner on programs (owner, created desc, program_hash);

-- Private: never listed, never shared. `secret` is sealed with the node's key (kit/sealed-box.ts).
create table webhooks (
  webhook_id text collate "C" primary key,
  owner      text collate "C" not null,
  url        text not null,
  events     text[] not null,
  secret     bytea not null,
  created    double precision not null
);
create index webhooks_by_owner on webhooks (owner, created desc, webhook_id);

-- What a node published of an instance, which may be before the allocation that gives the node its standing.
create index messages_instance_status on messages (sender, subject)
  where content_type = 'net-instance-status' and status = 'processed';

-- Sums over sets of messages that do not depend on the order of arrival (state/digest.ts).
create table digests (
  name  text primary key,
  sum   text not null,
  count bigint not null
);
