-- nmem's own schema: the series of changes of all machines. Other programs read the RAD tables instead.
CREATE SCHEMA IF NOT EXISTS nmem;

CREATE TABLE nmem.version (
  version      integer NOT NULL,
  -- True if the tables tasks, decisions, lessons and repo_metadata are those of the RAD memory specification.
  has_rad      boolean NOT NULL
);

CREATE TABLE nmem.changes (
  machine     text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  uuid        text COLLATE "C" NOT NULL,
  counter     bigint NOT NULL,
  gone        boolean NOT NULL,
  withdrawn   boolean NOT NULL,
  projects    text[] NOT NULL,
  name        text NOT NULL,
  digest      text NOT NULL,
  signature   text NOT NULL,
  body        text,              -- NULL: a tombstone, or the text was overtaken or forgotten
  received_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (machine, seq)
);

CREATE INDEX changes_by_uuid ON nmem.changes(uuid);

-- The last number of each machine's series, and how many texts it contains: one small row shows whether there is
-- anything to do.
CREATE TABLE nmem.heads (
  machine  text COLLATE "C" PRIMARY KEY,
  seq      bigint NOT NULL,
  texts    bigint NOT NULL,
  -- What the series contains, as JSON signed by the machine. Readers go no further than that.
  contents text
);
