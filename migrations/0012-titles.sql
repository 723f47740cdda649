-- What came of a unit in one line. NULL until it is distilled; lists then show what was asked.
ALTER TABLE work_units ADD COLUMN title TEXT;
