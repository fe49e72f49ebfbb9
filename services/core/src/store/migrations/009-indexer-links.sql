-- The hash of the block before next_block as the scan read it: what is read next has to follow it, also after a restart.
alter table indexer_scans add column prior_hash text;

-- When a scan that does not follow the tip moved last. progress_at is the tip's own: one must not hide that the other stands still.
alter table indexer_networks add column backfilled_at timestamptz not null default now();
