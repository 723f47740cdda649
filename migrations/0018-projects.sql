-- 17 -> 18. Work belongs to the repository that it is in: where that is not the session's project, its rows name it.
ALTER TABLE prompts ADD COLUMN project_id INTEGER;
ALTER TABLE tool_uses ADD COLUMN project_id INTEGER;
ALTER TABLE work_units ADD COLUMN project_id INTEGER;
CREATE INDEX work_units_elsewhere ON work_units(project_id) WHERE project_id IS NOT NULL;
-- Retention counts from the time at which nmem learnt of a tool use.
ALTER TABLE sessions ADD COLUMN imported_at INTEGER;

-- Remotes on hosts that ignore case, and the other names of these hosts, were projects of their own.
CREATE TEMP TABLE renamed AS
SELECT key AS old, project_id AS source,
  'repo:' || lower(CASE
    WHEN key LIKE 'repo:ssh.github.com:443/%' THEN 'github.com/' || substr(key, 25)
    WHEN key LIKE 'repo:ssh.github.com/%' THEN 'github.com/' || substr(key, 21)
    WHEN key LIKE 'repo:altssh.gitlab.com:443/%' THEN 'gitlab.com/' || substr(key, 28)
    WHEN key LIKE 'repo:altssh.bitbucket.org:443/%' THEN 'bitbucket.org/' || substr(key, 31)
    WHEN key LIKE 'repo:ssh.dev.azure.com/v3/%' THEN 'dev.azure.com/' || substr(key, 27)
    WHEN key LIKE 'repo:dev.azure.com/%' THEN replace(substr(key, 6), '/_git/', '/')
    ELSE substr(key, 6) END) AS new
FROM project_keys
WHERE key LIKE 'repo:github.%' OR key LIKE 'repo:gitlab.%' OR key LIKE 'repo:gitea.%' OR key LIKE 'repo:bitbucket.org/%'
  OR key LIKE 'repo:codeberg.org/%' OR key LIKE 'repo:dev.azure.com/%' OR key LIKE 'repo:ssh.github.com%'
  OR key LIKE 'repo:altssh.%' OR key LIKE 'repo:ssh.dev.azure.com/v3/%'
  OR key LIKE 'repo:%.ghe.com/%' AND key NOT LIKE 'repo:%/%.ghe.com/%';
-- The oldest project of a name keeps it.
CREATE TEMP TABLE merged AS
SELECT DISTINCT source, (SELECT min(o.source) FROM renamed o WHERE o.new = r.new) AS target FROM renamed r
WHERE source <> (SELECT min(o.source) FROM renamed o WHERE o.new = r.new);
UPDATE sessions SET project_id = (SELECT target FROM merged WHERE source = project_id)
  WHERE project_id IN (SELECT source FROM merged);
UPDATE memories SET vector_block = NULL, project_id = (SELECT target FROM merged WHERE source = project_id)
  WHERE project_id IN (SELECT source FROM merged);
DELETE FROM vectors WHERE project_id IN (SELECT source FROM merged);
DELETE FROM project_keys WHERE key IN (SELECT old FROM renamed);
INSERT OR IGNORE INTO project_keys(key, project_id) SELECT new, min(source) FROM renamed GROUP BY new;
UPDATE project_keys SET project_id = (SELECT target FROM merged WHERE source = project_id)
  WHERE project_id IN (SELECT source FROM merged);
DELETE FROM projects WHERE id IN (SELECT source FROM merged);
-- The full-text indexes name the project.
UPDATE meta SET value = 0 WHERE key = 'index_text_version' AND EXISTS (SELECT 1 FROM merged);
DROP TABLE renamed;
DROP TABLE merged;
