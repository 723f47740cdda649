-- 18 -> 19. Every session start and Stop reads the open ends of a project, which are few of its memories.
CREATE INDEX memories_open ON memories(project_id, created_at) WHERE kind = 'open';
