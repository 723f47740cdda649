-- 20 -> 21. Every process parses the schema: what one row has goes into that row.
ALTER TABLE steps ADD COLUMN boundary TEXT;
UPDATE steps SET boundary = (
  SELECT json_object('reason', reason, 'score', score, 'signals', json(signals), 'at_prompt', at_prompt, 'active', active, 'history', json(history))
  FROM boundaries WHERE step_id = steps.id)
WHERE id IN (SELECT step_id FROM boundaries);
DROP TABLE boundaries;
ALTER TABLE memories ADD COLUMN concepts TEXT;
UPDATE memories SET concepts = (
  SELECT json_group_array(concept) FROM (SELECT concept FROM memory_concepts WHERE memory_id = memories.id ORDER BY concept))
WHERE id IN (SELECT memory_id FROM memory_concepts);
DROP TABLE memory_concepts;
DROP TABLE drained;
DROP VIEW work_unit_files;
DROP INDEX spend_by_time;
DROP INDEX memories_pinned;
DROP INDEX memories_open;
CREATE INDEX memories_at_start ON memories(project_id, created_at) WHERE pinned OR kind = 'open';
