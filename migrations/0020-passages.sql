-- 19 -> 20. Passages take the place of whole messages and memories in the full-text index (ADR/0062). The first command in
-- a terminal fills it, and drops the old index, which takes too long for a hook.
CREATE VIRTUAL TABLE passage_index USING fts5(text, scope, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");
INSERT INTO passage_index(passage_index, rank) VALUES ('usermerge', 2);
-- Texts whose passages are to be indexed, at the end of a turn or before a search: row * 4 + kind.
CREATE TABLE waiting (
  text INTEGER PRIMARY KEY
) STRICT;
UPDATE meta SET value = 0 WHERE key = 'index_text_version';
