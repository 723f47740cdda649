-- The version of the rules by which a unit was last distilled. NULL: by rules from before schema 13.
ALTER TABLE work_units ADD COLUMN rules_version INTEGER;
