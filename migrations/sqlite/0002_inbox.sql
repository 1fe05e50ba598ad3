-- Invariant: an admitted statement waits here until exactly one outcome is written for its attempt;
-- neither changes once it is there. Only finished attempts are ever deleted.

CREATE TABLE inbox (
  attempt    INTEGER PRIMARY KEY AUTOINCREMENT,             -- order of arrival, never used twice
  digest     BLOB NOT NULL CHECK (length(digest) = 32),
  submission BLOB NOT NULL
) STRICT;

CREATE INDEX inbox_by_digest ON inbox (digest);

CREATE TABLE inbox_outcome (
  attempt INTEGER PRIMARY KEY,
  digest  BLOB NOT NULL CHECK (length(digest) = 32),
  idx     INTEGER,
  failure TEXT,
  CHECK ((idx IS NULL) <> (failure IS NULL))
) STRICT;

CREATE INDEX inbox_outcome_by_digest ON inbox_outcome (digest);

CREATE TRIGGER inbox_never_changes BEFORE UPDATE ON inbox
BEGIN SELECT RAISE(ABORT, 'inbox: an attempt never changes'); END;

CREATE TRIGGER inbox_keeps_what_waits BEFORE DELETE ON inbox
WHEN NOT EXISTS (SELECT 1 FROM inbox_outcome WHERE attempt = OLD.attempt)
BEGIN SELECT RAISE(ABORT, 'inbox: a waiting statement is never deleted'); END;

CREATE TRIGGER inbox_outcome_never_changes BEFORE UPDATE ON inbox_outcome
BEGIN SELECT RAISE(ABORT, 'inbox_outcome: an outcome never changes'); END;
