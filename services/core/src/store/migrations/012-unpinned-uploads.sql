-- Files that came without a signed message, while no message keeps them, and whose share of the node's room they use.
create table unpinned_uploads (
  hash   text collate "C" primary key,
  client text not null,
  -- What the file counts as: at least the least that a file costs.
  bytes  bigint not null,
  foreign key (hash) references files (hash) on delete cascade
);
create index unpinned_uploads_by_client on unpinned_uploads (client);
