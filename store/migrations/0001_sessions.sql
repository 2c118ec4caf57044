-- What a conversation has been exposed to, as the session package encodes it.
CREATE TABLE sessions (
  session_key TEXT    PRIMARY KEY,
  state       TEXT    NOT NULL, -- JSON
  updated_ms  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_by_update ON sessions (updated_ms);
