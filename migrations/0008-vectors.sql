-- What memories mean, where the user names a model for it (ADR/0033): vectors of one project and one model, packed.
CREATE TABLE vectors (
  id         INTEGER PRIMARY KEY,
  project_id INTEGER NOT NULL,
  model      TEXT NOT NULL,
  length     INTEGER NOT NULL,        -- numbers in each vector
  memories   BLOB NOT NULL,           -- their ids, eight bytes each, little endian, in the vectors' order
  data       BLOB NOT NULL            -- of each: its scale (f32), then its numbers (i8)
) STRICT;

-- The block that holds a memory's vector; NULL: none yet, or its text has changed since.
ALTER TABLE memories ADD COLUMN vector_block INTEGER;
