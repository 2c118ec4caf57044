-- Passkeys that open the console in place of the passphrase. Nothing here is secret: their private keys are elsewhere.
CREATE TABLE passkeys (
  id         TEXT    PRIMARY KEY,
  credential BLOB    NOT NULL, -- id that the authenticator gave
  site       TEXT    NOT NULL, -- relying party id
  handle     BLOB    NOT NULL, -- what the authenticator knows the person by
  public_key BLOB    NOT NULL, -- COSE
  name       TEXT    NOT NULL,
  transports TEXT    NOT NULL, -- JSON
  count      INTEGER NOT NULL, -- of signatures, as the authenticator counts them
  synced     INTEGER NOT NULL, -- may be copied by its maker
  backup     INTEGER NOT NULL, -- is copied now
  created_ms INTEGER NOT NULL,
  created_by TEXT    NOT NULL,
  used_ms    INTEGER NOT NULL, -- 0: never
  suspect_ms INTEGER NOT NULL, -- 0: its count never ran backwards
  UNIQUE (site, credential)
) WITHOUT ROWID;
