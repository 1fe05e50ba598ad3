-- Invariant: every record waits here from the commit that made it until the log has it, and nothing but its delivery takes
-- it out.

CREATE TABLE outbox (
  record INTEGER PRIMARY KEY REFERENCES record (no),
  bytes  INTEGER NOT NULL,  -- of its statement
  at     INTEGER NOT NULL   -- Unix seconds
) STRICT;

-- Apart from those that wait, so that no number of them is in the way of the others.
CREATE TABLE stuck (
  record INTEGER PRIMARY KEY REFERENCES record (no),
  bytes  INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  why    TEXT    NOT NULL
) STRICT;

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
