-- Every commit adds a segment to a text index, and a query looks into all of them. What is asked to be merged (at a session's
-- end) is merged from two segments of a level on, not from four: it serves recall and search, and costs three rows once.
INSERT INTO text_index(text_index, rank) VALUES ('usermerge', 2);
INSERT INTO tool_index(tool_index, rank) VALUES ('usermerge', 2);
INSERT INTO unit_index(unit_index, rank) VALUES ('usermerge', 2);
