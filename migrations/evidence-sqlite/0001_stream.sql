-- Invariant: a stream moves by one compare-and-swap at a time, and its records are numbered from 0 without gaps. A record
-- is never changed, and stays while it waits for the log or for its outcome.

CREATE TABLE stream (
  no         INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL UNIQUE,
  version    INTEGER NOT NULL CHECK (version >= 1),
  next_seq   INTEGER NOT NULL CHECK (next_seq >= 0),
  closed     INTEGER NOT NULL CHECK (closed IN (0, 1)),
  keep_until INTEGER NOT NULL,                             -- Unix seconds
  running    BLOB    NOT NULL
) STRICT;

CREATE INDEX stream_due ON stream (keep_until, name) WHERE closed = 0;
CREATE INDEX stream_over ON stream (keep_until) WHERE closed = 1;

CREATE TRIGGER stream_moves_forward BEFORE UPDATE ON stream
WHEN NEW.no IS NOT OLD.no OR NEW.name IS NOT OLD.name OR NEW.version <= OLD.version OR NEW.next_seq < OLD.next_seq
BEGIN SELECT RAISE(ABORT, 'stream: a stream only moves forward'); END;

-- Apart from the stream, for it is larger and changes seldom.
CREATE TABLE agreement (
  stream INTEGER PRIMARY KEY REFERENCES stream (no) ON DELETE CASCADE,
  agreed BLOB    NOT NULL
) STRICT;

-- What a stream uses once.
CREATE TABLE claim (
  stream INTEGER NOT NULL REFERENCES stream (no) ON DELETE CASCADE,
  kind   INTEGER NOT NULL,
  key    BLOB    NOT NULL,
  PRIMARY KEY (stream, kind, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE record (
  no        INTEGER PRIMARY KEY,                              -- the order of commit
  id        BLOB    NOT NULL UNIQUE CHECK (length(id) = 32),  -- SHA-256 of the statement with an empty unprotected header
  stream    INTEGER NOT NULL REFERENCES stream (no),
  seq       INTEGER NOT NULL CHECK (seq >= 0),
  kind      TEXT    NOT NULL,
  at        INTEGER NOT NULL,                                 -- Unix seconds
  instance  TEXT    NOT NULL,                                 -- which run of which gateway made it
  statement BLOB    NOT NULL,
  verdict   BLOB,
  annex     BLOB    NOT NULL,                                 -- plaintext that never leaves this database
  UNIQUE (stream, seq)
) STRICT;

CREATE TRIGGER record_stays BEFORE UPDATE ON record
BEGIN SELECT RAISE(ABORT, 'record: a record is never changed'); END;

-- A decision that was served and has no outcome.
CREATE TABLE open_decision (
  record INTEGER PRIMARY KEY REFERENCES record (no)
) STRICT;
