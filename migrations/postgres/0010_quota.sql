-- Invariant: none. Counters of what was used; a server that crashes counts anew.

CREATE UNLOGGED TABLE quota (
  log_id   smallint NOT NULL,
  bucket   text     NOT NULL,
  start_at bigint   NOT NULL, -- of the window
  used     bigint   NOT NULL,
  granted  bigint   NOT NULL, -- to whoever took last
  PRIMARY KEY (log_id, bucket)
) WITH (fillfactor = 50);

CREATE INDEX quota_by_start ON quota (log_id, start_at);
