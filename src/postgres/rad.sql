-- The tables of the RAD memory specification.
CREATE TABLE IF NOT EXISTS tasks (
  id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  repo_id          varchar(255) NOT NULL,
  task_description text NOT NULL,
  task_kind        varchar(50) NOT NULL,
  agent_tier       varchar(10) NOT NULL,
  created_at       timestamp DEFAULT now(),
  completed_at     timestamp,
  success          boolean NOT NULL,
  error_message    text,
  metadata         jsonb DEFAULT '{}'::jsonb
);
CREATE INDEX IF NOT EXISTS idx_tasks_repo ON tasks(repo_id);
CREATE INDEX IF NOT EXISTS idx_tasks_kind ON tasks(task_kind);
CREATE INDEX IF NOT EXISTS idx_tasks_created ON tasks(created_at DESC);

CREATE TABLE IF NOT EXISTS decisions (
  id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  task_id       uuid REFERENCES tasks(id) ON DELETE CASCADE,
  decision_type varchar(50) NOT NULL,
  chosen_option text NOT NULL,
  alternatives  text[],
  reasoning     text NOT NULL,
  confidence    float CHECK (confidence >= 0 AND confidence <= 1),
  created_at    timestamp DEFAULT now(),
  metadata      jsonb DEFAULT '{}'::jsonb
);
CREATE INDEX IF NOT EXISTS idx_decisions_task ON decisions(task_id);
CREATE INDEX IF NOT EXISTS idx_decisions_type ON decisions(decision_type);

CREATE TABLE IF NOT EXISTS lessons (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  task_id     uuid REFERENCES tasks(id) ON DELETE CASCADE,
  lesson_type varchar(50) NOT NULL,
  title       varchar(255) NOT NULL,
  description text NOT NULL,
  tags        text[] DEFAULT '{}',
  created_at  timestamp DEFAULT now(),
  metadata    jsonb DEFAULT '{}'::jsonb
);
CREATE INDEX IF NOT EXISTS idx_lessons_task ON lessons(task_id);
CREATE INDEX IF NOT EXISTS idx_lessons_type ON lessons(lesson_type);
CREATE INDEX IF NOT EXISTS idx_lessons_tags ON lessons USING gin(tags);

CREATE TABLE IF NOT EXISTS repo_metadata (
  repo_id        varchar(255) PRIMARY KEY,
  repo_name      varchar(255) NOT NULL,
  repo_url       text,
  project_type   varchar(100),
  main_languages text[],
  frameworks     text[],
  last_indexed   timestamp DEFAULT now(),
  metadata       jsonb DEFAULT '{}'::jsonb
);
