-- 22 -> 23. A session end merges four segments of an index, as SQLite's default has it: merging two wrote twice as much.
INSERT INTO passage_index(passage_index, rank) VALUES ('usermerge', 4);
INSERT INTO tool_index(tool_index, rank) VALUES ('usermerge', 4);
INSERT INTO unit_index(unit_index, rank) VALUES ('usermerge', 4);
-- Each session start asks for the agents with imported files, so a list is kept.
INSERT INTO meta(key, value) SELECT 'imported_agents', json_group_array(platform) FROM (SELECT DISTINCT platform FROM imports) HAVING count(*) > 0;
