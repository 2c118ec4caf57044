-- The configuration file that was last put in force. A file that differs from it waits for a person, also when it was
-- changed while no daemon ran.
CREATE TABLE configuration (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  source     BLOB    NOT NULL,
  applied_ms INTEGER NOT NULL
);
