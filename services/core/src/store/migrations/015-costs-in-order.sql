-- What everybody's things cost is listed newest first (`GET /costs` without a filter).
create index credit_resources_by_time on credit_resources (created desc, item_hash);
