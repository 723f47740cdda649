-- 21 -> 22. A plan that an agent keeps outside the project is no change: a session that only planned was not abandoned.
WITH edited AS (
  SELECT s.work_unit_id AS unit, max(NOT (f.path LIKE '%/plans/%.md' AND (f.path LIKE '/%' OR f.path LIKE '~%' OR f.path LIKE '_:%'))) AS others
  FROM work_units u JOIN steps s ON s.session_id = u.session_id AND s.work_unit_id = u.id JOIN step_files f ON f.step_id = s.id
  WHERE u.outcome = 'abandoned' AND f.edits > 0 GROUP BY s.work_unit_id)
UPDATE work_units SET outcome = 'answered', evidence = 'a plan was written, and nothing else was changed'
WHERE id IN (SELECT unit FROM edited WHERE NOT others);
