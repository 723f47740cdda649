-- Tables and columns named as the field names them (docs/glossary.md). No row changes.
ALTER TABLE told RENAME TO injections;
ALTER TABLE injections RENAME COLUMN moment TO point;
ALTER TABLE steps RENAME COLUMN sketch TO features;
ALTER TABLE boundaries RENAME COLUMN standing TO active;

-- The text that the agent received, with the first of its items; NULL with the others, and where something of it may have
-- been forgotten since. Serves `nmem log --told`.
ALTER TABLE injections ADD COLUMN text TEXT;
