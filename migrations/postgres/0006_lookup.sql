-- Invariant: none. What is here was read from the entries and can be read from them again.

CREATE TABLE lookup (
  log_id smallint NOT NULL,
  kind   smallint NOT NULL,
  value  text     NOT NULL,
  idx    bigint   NOT NULL,
  PRIMARY KEY (log_id, kind, value, idx)
);
