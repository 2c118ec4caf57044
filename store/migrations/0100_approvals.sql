-- Questions to people and their answers. An id becomes free again when its approval is gone, so a record is named by
-- id and creation.
CREATE TABLE approvals (
  id          TEXT    NOT NULL,
  created_ms  INTEGER NOT NULL,
  expires_ms  INTEGER NOT NULL,
  kind        TEXT    NOT NULL,
  state       TEXT    NOT NULL CHECK (state IN ('pending', 'resolved', 'consumed', 'void')),
  binding     TEXT    NOT NULL,
  connection  TEXT    NOT NULL,
  device      TEXT    NOT NULL,
  client      TEXT    NOT NULL,
  detached    INTEGER NOT NULL,
  session_key TEXT    NOT NULL,
  run_id      TEXT    NOT NULL,
  digest      TEXT    NOT NULL,
  allowed     TEXT    NOT NULL, -- decision words, separated by commas
  request     TEXT    NOT NULL, -- JSON, as people are shown it
  decision    TEXT    NOT NULL DEFAULT '',
  resolved_by TEXT    NOT NULL DEFAULT '',
  reason      TEXT    NOT NULL DEFAULT '',
  resolved_ms INTEGER NOT NULL DEFAULT 0,
  consumed_ms INTEGER NOT NULL DEFAULT 0,
  grant_id    TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (id, created_ms)
);
CREATE INDEX approvals_pending  ON approvals (expires_ms) WHERE state = 'pending';
CREATE INDEX approvals_unused   ON approvals (expires_ms) WHERE state = 'resolved' AND decision IN ('allow-once', 'allow-always');
CREATE INDEX approvals_resolved ON approvals (resolved_ms) WHERE resolved_ms > 0;
CREATE INDEX approvals_created  ON approvals (created_ms);

-- Remembered answers.
CREATE TABLE grants (
  id           TEXT    PRIMARY KEY,
  body         TEXT    NOT NULL, -- JSON; what follows is kept beside it because it changes or is searched
  agent        TEXT    NOT NULL,
  tool         TEXT    NOT NULL,
  created_ms   INTEGER NOT NULL,
  expires_ms   INTEGER NOT NULL,
  uses         INTEGER NOT NULL DEFAULT 0,
  last_used_ms INTEGER NOT NULL DEFAULT 0,
  revoked_ms   INTEGER NOT NULL DEFAULT 0,
  revoked_by   TEXT    NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX grants_in_force ON grants (expires_ms) WHERE revoked_ms = 0;
