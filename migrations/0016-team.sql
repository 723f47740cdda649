-- Team memory (ADR/0051): which memories are shared, in which version, and the machines that share. Neither table is
-- read by a hook unless a team is configured or a memory of the team is shown. Times are Unix milliseconds.

-- The newest known change of each shared memory, and memories that must not be shared.
CREATE TABLE shared (
  uuid          TEXT PRIMARY KEY,    -- of the memory
  counter       INTEGER NOT NULL,    -- logical counter of the newest change; 0: never shared
  machine       INTEGER NOT NULL,    -- who made it; 0: another program, in the RAD tables
  fingerprint   BLOB,                -- of the memory's row when that change was made or applied; NULL: withdrawn or forgotten
  seq           INTEGER,             -- the change's number in this machine's own series; NULL: another machine's change
  own           INTEGER NOT NULL,    -- 1: this machine reports when the memory is gone, because it was made or forgotten here
  private       INTEGER NOT NULL DEFAULT 0,
  author        TEXT,                -- whose words another machine's change consists of: hand, user, agent, tool
  superseded_by TEXT                 -- uuid of the memory that supersedes it, if that one has not arrived yet
) STRICT, WITHOUT ROWID;

CREATE TABLE machines (
  id      INTEGER PRIMARY KEY,
  key     TEXT NOT NULL,             -- Ed25519 public key in hex
  name    TEXT NOT NULL,             -- of the person, as they chose it
  seq     INTEGER NOT NULL,          -- own: the last number given; others: everything up to here is applied
  own     INTEGER NOT NULL DEFAULT 0,
  trusted INTEGER NOT NULL DEFAULT 0,
  seen_at INTEGER NOT NULL           -- when the last change arrived
) STRICT;

-- With whom memories of a project are shared: team, mine (one person's machines), none. NULL: as the folder rules say.
ALTER TABLE projects ADD COLUMN share TEXT;
