-- What recognises a person's passphrase. The key derived from it is never stored.
CREATE TABLE people (
  name       TEXT    PRIMARY KEY,
  salt       BLOB    NOT NULL,
  memory_kib INTEGER NOT NULL,
  passes     INTEGER NOT NULL,
  lanes      INTEGER NOT NULL,
  verifier   BLOB    NOT NULL,
  changed_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- Tokens by which agents are told apart. The token itself is never stored.
CREATE TABLE agent_tokens (
  id           TEXT    PRIMARY KEY,
  hash         BLOB    NOT NULL UNIQUE, -- SHA-256
  prefix       TEXT    NOT NULL,
  name         TEXT    NOT NULL,
  agent        TEXT    NOT NULL,
  workspace    TEXT    NOT NULL,
  owner        INTEGER NOT NULL,
  created_ms   INTEGER NOT NULL,
  created_by   TEXT    NOT NULL,
  expires_ms   INTEGER NOT NULL, -- 0: does not expire
  last_used_ms INTEGER NOT NULL DEFAULT 0,
  revoked_ms   INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
