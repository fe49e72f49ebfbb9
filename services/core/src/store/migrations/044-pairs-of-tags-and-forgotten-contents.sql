-- Totals of two tags together are counted when they are asked for (lists/totals.ts): of a message with 64 tags 2,016 of them were updated
-- while all who write waited. Labels of tags begin with g.
update event_counter set schema_version = 44;
delete from totals where a >= 'g:' and a < 'g;' and b >= 'g:' and b < 'g;';
-- A node that is sent a content that is too long written out (042) rejects it, and says what was signed of it; it takes another's word that
-- the message was forgotten. So that all hold the same, nothing but that word is left of those that were forgotten before, the same day.
-- Digits within strings do not count: nobody reads those again, and a text that is erased does not come back.
update messages set content = null, source_text = null
where status = 'forgotten' and content is not null and form <> 'upload' and (source_text is null or octet_length(source_text) > 512)
  and octet_length(content::text) > 32768
  and regexp_replace(content::text, '"([^"\\]|\\.)*"', '""', 'g') ~ '[[ ]-?([0-9]{24}|0\.0{20})';
