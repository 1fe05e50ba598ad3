-- The schema of a verification service in SQLite: receipt chains, signed statements, jobs. Times are whole Unix seconds.
--
-- Triggers refuse changes that the store promises never to make, whoever asks for them.

-- The end of the chain of each verifier about each agent.
-- Invariant: a chain only moves forward.
CREATE TABLE chain (
  issuer  TEXT    NOT NULL,
  subject TEXT    NOT NULL,
  next    INTEGER NOT NULL CHECK (next >= 0),                  -- position of the next receipt
  last    BLOB    CHECK (length(last) = 32),                   -- entry of the receipt before it
  halted  TEXT,                                                -- why nothing may be signed any more
  PRIMARY KEY (issuer, subject),
  CHECK ((next = 0) = (last IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER chain_moves_forward BEFORE UPDATE ON chain
WHEN NEW.next < OLD.next OR (NEW.next = OLD.next AND NEW.last IS NOT OLD.last)
BEGIN SELECT RAISE(ABORT, 'chain: a chain only moves forward'); END;

CREATE TRIGGER chain_stays BEFORE DELETE ON chain
BEGIN SELECT RAISE(ABORT, 'chain: the end of a chain is never forgotten'); END;

-- Invariant: a position of a chain has one statement, which never changes.
CREATE TABLE statement (
  no          INTEGER PRIMARY KEY AUTOINCREMENT,               -- the order of signing
  id          BLOB    NOT NULL UNIQUE CHECK (length(id) = 32), -- the entry: SHA-256 of the statement
  issuer      TEXT    NOT NULL,
  subject     TEXT    NOT NULL,
  position    INTEGER CHECK (position >= 0),                   -- NULL: outside of any chain
  at          INTEGER NOT NULL,
  receipt     BLOB    NOT NULL,                                -- the verification receipt, canonical JSON
  statement   BLOB    NOT NULL,                                -- the bytes that are sent
  log_receipt BLOB,                                            -- the log's receipt, once it has answered
  delivered   INTEGER,                                         -- when the log's receipt was stored
  UNIQUE (issuer, subject, position),
  CHECK ((log_receipt IS NULL) = (delivered IS NULL))
) STRICT;

CREATE TRIGGER statement_is_never_changed BEFORE UPDATE ON statement
WHEN NEW.no IS NOT OLD.no OR NEW.id IS NOT OLD.id OR NEW.issuer IS NOT OLD.issuer OR NEW.subject IS NOT OLD.subject
  OR NEW.position IS NOT OLD.position OR NEW.at IS NOT OLD.at OR NEW.receipt IS NOT OLD.receipt
  OR NEW.statement IS NOT OLD.statement OR (OLD.log_receipt IS NOT NULL AND NEW.log_receipt IS NULL)
BEGIN SELECT RAISE(ABORT, 'statement: a signed statement is never changed'); END;

CREATE INDEX statement_delivered ON statement (delivered);

-- Statements that wait for their delivery to the log.
-- Invariant: a statement waits here from the commit that made it until it is delivered.
CREATE TABLE outbox (
  statement INTEGER PRIMARY KEY REFERENCES statement (no),
  refused   TEXT                                               -- why the log refuses it; NULL: to be sent
) STRICT;

CREATE TRIGGER statement_waits BEFORE DELETE ON statement
WHEN EXISTS (SELECT 1 FROM outbox WHERE statement = OLD.no)
BEGIN SELECT RAISE(ABORT, 'statement: it waits for the log'); END;

-- Invariant: a client's request about an agent has one job, and a job one statement.
CREATE TABLE job (
  id        TEXT    NOT NULL PRIMARY KEY,
  client    TEXT    NOT NULL,
  digest    TEXT    NOT NULL,                                  -- of the canonical form of the request
  subject   TEXT    NOT NULL,                                  -- the agent, named by the request or the configuration; '': none
  request   BLOB    NOT NULL,
  at        INTEGER NOT NULL,                                  -- when the request was accepted, or has failed
  unended   INTEGER NOT NULL DEFAULT 0 CHECK (unended >= 0),   -- how often its checks began, and the process ended before them
  failed    TEXT,                                              -- code of the failure; NULL: pending or done
  reason    TEXT,                                              -- why it failed, in words
  statement INTEGER UNIQUE REFERENCES statement (no) ON DELETE CASCADE,
  UNIQUE (client, digest, subject),
  CHECK (failed IS NULL OR statement IS NULL),
  CHECK ((failed IS NULL) = (reason IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX job_at ON job (at);
