-- Devices that may connect over the gateway protocol. Their tokens are derived from salts with a key that is not here.
CREATE TABLE paired_devices (
  id          TEXT    PRIMARY KEY, -- hex SHA-256 of the key
  public_key  BLOB    NOT NULL,
  name        TEXT    NOT NULL,
  roles       TEXT    NOT NULL, -- JSON
  scopes      TEXT    NOT NULL, -- JSON: what its connections may have
  vouched     TEXT    NOT NULL, -- JSON: what of it a signed-in person approved
  person      TEXT    NOT NULL,
  platform    TEXT    NOT NULL,
  family      TEXT    NOT NULL,
  client      TEXT    NOT NULL,
  mode        TEXT    NOT NULL,
  ip          TEXT    NOT NULL,
  tokens      TEXT    NOT NULL, -- JSON by role
  created_ms  INTEGER NOT NULL,
  approved_ms INTEGER NOT NULL,
  seen_ms     INTEGER NOT NULL
) WITHOUT ROWID;

-- A token of the gateway protocol is no agent's and reads no metrics: it opens the WebSocket gateway.
ALTER TABLE agent_tokens ADD COLUMN gateway INTEGER NOT NULL DEFAULT 0;
