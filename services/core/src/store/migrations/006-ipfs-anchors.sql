-- Files of IPFS, and archives of messages that chains name.

-- What is kept of IPFS: a root is a CID, or import:<id> while a file comes in.
create table ipfs_dags (
  root       text collate "C" primary key,
  complete   boolean not null,
  -- Milliseconds since 1970.
  touched_ms bigint not null
);
create index ipfs_dags_unfinished on ipfs_dags (touched_ms) where not complete;

-- Blocks are blobs, named by their SHA-256. The sweep leaves those alone that some root needs.
create table ipfs_blocks (
  block bytea not null,
  root  text collate "C" not null references ipfs_dags (root) on delete cascade,
  primary key (block, root)
);
create index ipfs_blocks_by_root on ipfs_blocks (root);

-- Files that pending messages lack and that can be fetched.
create table wanted_files (
  hash     text collate "C" primary key,
  attempts integer not null default 0,
  due_ms   bigint not null,
  reason   jsonb
);
create index wanted_files_by_due on wanted_files (due_ms);
insert into wanted_files (hash, due_ms)
select distinct substr(key, 6), 0 from dependencies join messages using (item_hash)
where status = 'pending' and key ~ '^file:(Qm|baf)';

-- Files of IPFS that may be contents of messages: read while messages are decided, when nothing of IPFS is waited for.
create table ipfs_contents (
  hash  text primary key references files (hash) on delete cascade,
  bytes bytea not null
);

-- Names of files: a STORE message says which file or which name it is a new version of.
create index messages_store_ref on messages ((content ->> 'ref'), owner) where type = 'STORE' and status = 'processed';
-- CIDs, for what nothing keeps any more.
create index files_of_ipfs on files (stored_at) where length(hash) <> 64;

-- Events of anchoring contracts, as the chain has them now: a reorganisation takes rows away and brings others.
create table anchor_events (
  network      text not null,
  block_number bigint not null,
  log_index    integer not null,
  tx_hash      text not null,
  emitter      text not null,
  -- What the event says, as it says it.
  content      text not null,
  -- A CID, or null where the archive is in the event itself.
  cid          text collate "C",
  -- waiting: to be fetched and read; refused: with a reason, for good.
  state        text not null check (state in ('waiting', 'processed', 'refused')),
  reason       jsonb,
  attempts     integer not null default 0,
  due_ms       bigint not null,
  seen_ms      bigint not null,
  messages     integer not null default 0,
  primary key (network, block_number, log_index)
);
create index anchor_events_due on anchor_events (network, due_ms) where state = 'waiting';
create index anchor_events_by_cid on anchor_events (cid);

-- How far the events of a network are read; above settled_block they may still change.
create table anchor_networks (
  network       text primary key,
  settled_block bigint not null default -1,
  read_block    bigint,
  -- A chain that begins with another block is another chain.
  genesis_hash  text,
  -- Events of the log up to it are packed into archives of this node.
  packed_seq    bigint not null default 0
);

-- One row for a message in an archive of an event.
create table confirmations (
  item_hash    text collate "C" not null,
  chain        text not null,
  network      text not null,
  block_number bigint not null,
  log_index    integer not null,
  tx_hash      text not null,
  -- Of the archived copy: a confirmation of another sender's copy is none.
  sender       text not null,
  primary key (item_hash, network, block_number, log_index)
);
create index confirmations_by_event on confirmations (network, block_number, log_index);

-- Archives that this node made. One is under way at a time.
create table packed_archives (
  id         bigint generated always as identity primary key,
  network    text not null,
  cid        text collate "C" not null,
  messages   integer not null,
  tx_hash    text,
  nonce      bigint,
  -- Wei for a unit of gas.
  max_fee    numeric,
  sends      integer not null default 0,
  sent_ms    bigint,
  settled    boolean not null default false,
  made_ms    bigint not null
);
create index packed_archives_open on packed_archives (network, id) where not settled;
create index packed_archives_by_cid on packed_archives (cid);
