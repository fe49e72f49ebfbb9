-- The message that changed an instance, so that whoever reads the event can check it; null in events of other kinds, and where it was not one
-- message alone.
alter table events add column cause text;
