-- The audit log. record is the canonical JSON that the chain protects; the
-- other columns repeat what queries filter on.
CREATE TABLE audit (
  seq     INTEGER PRIMARY KEY,
  ts      INTEGER NOT NULL, -- Unix milliseconds
  type    TEXT    NOT NULL,
  ref     INTEGER,          -- outcomes: seq of the decision
  session TEXT    NOT NULL,
  agent   TEXT    NOT NULL,
  tool    TEXT    NOT NULL,
  verdict TEXT    NOT NULL, -- decisions
  status  TEXT    NOT NULL, -- outcomes
  record  TEXT    NOT NULL,
  hash    BLOB    NOT NULL
);
-- The outcome of a decision. Decisions, which calls wait for, are not in it.
CREATE INDEX audit_outcomes ON audit (ref) WHERE ref IS NOT NULL;

-- Where a time begins in the log: every record up to seq is from at or before.
-- A row for each hundred or so records replaces an index on ts, which would
-- cost every record; clocks may jump, so ts alone does not rise with seq.
CREATE TABLE audit_times (
  at  INTEGER NOT NULL, -- Unix milliseconds
  seq INTEGER NOT NULL,
  PRIMARY KEY (at, seq)
) WITHOUT ROWID;

-- Signed statements about the chain, one of each kind.
CREATE TABLE audit_seals (
  kind      TEXT PRIMARY KEY,
  seq       INTEGER NOT NULL,
  hash      BLOB    NOT NULL,
  ts        INTEGER NOT NULL, -- Unix milliseconds
  open      INTEGER NOT NULL,
  key       TEXT    NOT NULL,
  signature TEXT    NOT NULL
) WITHOUT ROWID;
