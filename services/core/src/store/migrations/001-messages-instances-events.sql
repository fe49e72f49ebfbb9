-- Messages as they were signed. `content` serves queries; what is answered is read from `signed_text`, since jsonb
-- keeps neither the order of keys nor the spelling of numbers.
create table messages (
  item_hash   text primary key,
  chain       text not null,
  sender      text not null,
  type        text not null,
  channel     text not null,
  "timestamp" bigint not null,
  post_type   text,
  content     jsonb not null,
  signed_text text not null,
  signature   text not null,
  received_at timestamptz not null default now()
);
create index messages_by_time    on messages ("timestamp" desc, item_hash);
create index messages_by_sender  on messages (sender, "timestamp" desc, item_hash);
create index messages_by_type    on messages (type, "timestamp" desc, item_hash);
create index messages_by_channel on messages (channel, "timestamp" desc, item_hash);

-- The fold of each instance's messages (instances/fold.ts). `stamps` says which message each part was taken from,
-- so that the order of arrival does not matter.
create table instances (
  instance_id  text primary key references messages (item_hash),
  owner        text not null,
  name         text not null,
  description  text not null,
  cpu          integer not null,
  memory_mib   integer not null,
  disk_gib     integer not null,
  image        text not null,
  ssh_key      text not null,
  firewall     jsonb not null,
  desired      text not null,
  restart_id   text,
  node_id      text,
  node_address text,
  ipv6         text not null,
  phase        text not null,
  reason       jsonb,
  created_at   bigint not null,
  updated_at   bigint not null,
  stamps       jsonb not null
);
create index instances_by_time  on instances (created_at desc, instance_id);
create index instances_by_owner on instances (owner, created_at desc, instance_id);
create index instances_by_node  on instances (node_id, created_at desc, instance_id);
create index instances_running  on instances (created_at desc, instance_id) where phase = 'running';

-- What a node observed of an instance may arrive before the allocation that gives the node its standing.
create index messages_instance_status on messages (sender, (content -> 'content' ->> 'instance_id'))
  where post_type = 'net-instance-status';

-- The numbered log that everybody outside reads. Numbers are given under the lock of the one row of `event_counter`,
-- which the writing transaction holds to its end: no reader can see 8 before 7.
create table events (
  seq     bigint primary key,
  kind    text not null,
  data    jsonb not null,
  time_ms bigint not null
);
create table event_counter (
  id       boolean primary key default true check (id),
  last_seq bigint not null
);
insert into event_counter (last_seq) values (0);

-- Blobs on disk, and who asked for them to be kept.
create table files (
  hash         text primary key,
  size_bytes   bigint not null,
  content_type text not null,
  stored_at    timestamptz not null default now()
);
create table file_pins (
  file_hash    text not null references files (hash),
  message_hash text not null references messages (item_hash),
  owner        text not null,
  primary key (file_hash, message_hash)
);
