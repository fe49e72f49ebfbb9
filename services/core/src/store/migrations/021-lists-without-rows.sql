-- Of three frequent values that few messages have together, an index answers two, and the third was looked up in the row of
-- every message that has those: a page of a table for each, which is ten times the work. These carry the third (lists/properties.ts).
drop index message_tags_by_sender, message_tags_by_channel, messages_by_sender_channel, messages_by_sender_shape;
create index message_tags_by_sender on message_tags (tag, sender, type, "time" desc, item_hash)
  include (channel, shape) where item_hash <> 'message_tags_by_sender';
create index message_tags_by_channel on message_tags (tag, channel, type, "time" desc, item_hash)
  include (shape) where item_hash <> 'message_tags_by_channel';
create index messages_by_sender_channel on messages (sender, channel, type, "time" desc, item_hash)
  include (shape) where status = 'processed' and item_hash <> 'messages_by_sender_channel';
create index messages_by_sender_shape on messages (sender, shape, "time" desc, item_hash)
  include (channel) where status = 'processed' and item_hash <> 'messages_by_sender_shape';
-- An index tells without the row only of pages that were vacuumed since they were written. By default that waits until a
-- fifth of a table is new, and the newest are what lists are asked for.
alter table messages set (autovacuum_vacuum_insert_scale_factor = 0.02);
alter table message_tags set (autovacuum_vacuum_insert_scale_factor = 0.02);
