-- The schema of a gateway's evidence in SQLite: sessions as streams, their records, and what the log has not received yet.
--
-- Triggers refuse changes that the store promises never to make, whoever asks for them. Times are whole Unix seconds.
--
--   streams and records   stream, agreement, claim, record, open_decision
--   outbox                outbox, stuck, delivery

-- === Streams and records ================================================================================================

-- Invariant: a stream only moves forward, by one compare-and-swap at a time, and numbers its records from 0 without gaps.
CREATE TABLE stream (
  no         INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL UNIQUE,
  version    INTEGER NOT NULL CHECK (version >= 1),           -- compared by the next commit
  next_seq   INTEGER NOT NULL CHECK (next_seq >= 0),          -- number of the next record
  closed     INTEGER NOT NULL CHECK (closed IN (0, 1)),
  keep_until INTEGER NOT NULL,
  running    BLOB    NOT NULL
) STRICT;

CREATE INDEX stream_due ON stream (keep_until, name) WHERE closed = 0;
CREATE INDEX stream_over ON stream (keep_until) WHERE closed = 1;

CREATE TRIGGER stream_moves_forward BEFORE UPDATE ON stream
WHEN NEW.no IS NOT OLD.no OR NEW.name IS NOT OLD.name OR NEW.version <= OLD.version OR NEW.next_seq < OLD.next_seq
BEGIN SELECT RAISE(ABORT, 'stream: a stream only moves forward'); END;

-- The agreed part of a stream's state. A table of its own, as it is larger than the rest and changes seldom.
CREATE TABLE agreement (
  stream INTEGER PRIMARY KEY REFERENCES stream (no) ON DELETE CASCADE,
  agreed BLOB    NOT NULL
) STRICT;

-- Keys that a stream has used.
-- Invariant: a stream uses a key once.
CREATE TABLE claim (
  stream INTEGER NOT NULL REFERENCES stream (no) ON DELETE CASCADE,
  kind   INTEGER NOT NULL,
  key    BLOB    NOT NULL,
  PRIMARY KEY (stream, kind, key)
) STRICT, WITHOUT ROWID;

-- Invariant: a record never changes, and stays while it waits for the log or, as an open decision, for its outcome.
CREATE TABLE record (
  no        INTEGER PRIMARY KEY,                              -- the order of commit
  id        BLOB    NOT NULL UNIQUE CHECK (length(id) = 32),  -- SHA-256 of the statement with an empty unprotected header
  stream    INTEGER NOT NULL REFERENCES stream (no),
  seq       INTEGER NOT NULL CHECK (seq >= 0),
  kind      TEXT    NOT NULL,
  at        INTEGER NOT NULL,
  instance  TEXT    NOT NULL,                                 -- the gateway process that made it
  statement BLOB    NOT NULL,
  verdict   BLOB,
  annex     BLOB    NOT NULL,                                 -- plaintext that never leaves this database
  UNIQUE (stream, seq)
) STRICT;

CREATE TRIGGER record_stays BEFORE UPDATE ON record
BEGIN SELECT RAISE(ABORT, 'record: a record is never changed'); END;

-- Decisions that were served and have no outcome yet.
CREATE TABLE open_decision (
  record INTEGER PRIMARY KEY REFERENCES record (no)
) STRICT;

-- === Outbox =============================================================================================================

-- Records that wait for their delivery to the log.
-- Invariant: a record waits here or in `stuck` from the commit that made it until it is delivered.
CREATE TABLE outbox (
  record INTEGER PRIMARY KEY REFERENCES record (no),
  bytes  INTEGER NOT NULL,  -- size of its statement
  at     INTEGER NOT NULL   -- time of the record; zero: it was stuck before
) STRICT;

CREATE INDEX outbox_retried ON outbox (record) WHERE at = 0;

-- Records that the log refused. A table of its own, so that they do not delay the others.
CREATE TABLE stuck (
  record INTEGER PRIMARY KEY REFERENCES record (no),
  bytes  INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  why    TEXT    NOT NULL
) STRICT;

-- Delivered records.
CREATE TABLE delivery (
  record     INTEGER PRIMARY KEY REFERENCES record (no) ON DELETE CASCADE,
  leaf_index INTEGER,
  receipt    BLOB
) STRICT;

CREATE TRIGGER record_waits AFTER INSERT ON record
BEGIN INSERT INTO outbox (record, bytes, at) VALUES (NEW.no, length(NEW.statement), NEW.at); END;

CREATE TRIGGER outbox_keeps_what_waits BEFORE DELETE ON outbox
WHEN NOT EXISTS (SELECT 1 FROM delivery WHERE record = OLD.record)
 AND NOT EXISTS (SELECT 1 FROM stuck WHERE record = OLD.record)
BEGIN SELECT RAISE(ABORT, 'outbox: what waits stays until it is delivered'); END;

CREATE TRIGGER stuck_keeps_what_waits BEFORE DELETE ON stuck
WHEN NOT EXISTS (SELECT 1 FROM delivery WHERE record = OLD.record)
 AND NOT EXISTS (SELECT 1 FROM outbox WHERE record = OLD.record)
BEGIN SELECT RAISE(ABORT, 'stuck: what waits stays until it is delivered'); END;
