-- A content whose numbers are far longer without exponents is none (protocol's whyTooLongWrittenOut): what earlier releases took is judged
-- again, so that nodes that had it hold what nodes do that are sent it now.
update event_counter set schema_version = 42;
-- Such a content is longer than what its numbers may grow by, from a text of 700 bytes at least: no number grows more than 47 times. One
-- that grows has 24 digits, or 20 zeros after its point. The length of a text is known without reading it.
insert into reconsider (item_hash)
select m.item_hash from messages m cross join lateral (select m.content::text as written offset 0) w
where m.form <> 'upload' and m.status in ('processed', 'pending') and (m.source_text is null or octet_length(m.source_text) > 512)
  and octet_length(w.written) > 32768 and w.written ~ '[[ ]-?([0-9]{24}|0\.0{20})'
on conflict do nothing;
