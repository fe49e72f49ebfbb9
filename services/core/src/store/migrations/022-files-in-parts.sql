-- Files that come in parts, where what has come of them is in an object store (store/files/parts/shared-place.ts).
create table files_in_parts (
  file uuid primary key,
  -- Hash, uploader and size.
  name text not null unique,
  -- From the first byte on, without a gap.
  received_bytes bigint not null,
  -- Milliseconds since 1970, by the clock of the process that wrote.
  written_ms bigint not null
);
-- The objects that they are made of, named by `piece`.
create table pieces_of_files (
  piece uuid primary key,
  file uuid not null,
  -- Where it begins in the file; null until it is part of it.
  first_byte bigint
);
create index pieces_of_files_in_order on pieces_of_files (file, first_byte);
