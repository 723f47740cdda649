-- Units in the words that were said and done in them, for recall (DESIGN §5, ADR/0027): an index of their own, since a unit
-- is many times as long as a prompt and BM25 measures length. A word counts three times at most. `files` holds a word for
-- each file: `p…` edited, `r…` read, then a hash of the path. Rows come with rules' look at a unit, so all are looked at again.
CREATE VIRTUAL TABLE unit_index USING fts5(words, files, scope, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");

UPDATE work_units SET rules_due = 1;
