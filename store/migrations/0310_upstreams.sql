-- What people accepted of foreign MCP servers: how each is reached, and the definitions of its tools by digest.
CREATE TABLE upstreams (
  server      TEXT    PRIMARY KEY,
  launch      TEXT    NOT NULL,
  tools       TEXT    NOT NULL, -- JSON object: the server's name of a tool → digest of its definition
  accepted_by TEXT    NOT NULL,
  accepted_ms INTEGER NOT NULL
);
