-- Invariant: a stream moves by one compare-and-swap at a time, and its records are numbered from 0 without gaps. A record
-- is never changed, and stays while it waits for the log or for its outcome.

-- One run of one gateway process, for as long as its lease lasts. Each counts what its own commits added to the outbox
-- and took from it, so that no two of them wait for one row; only the sum means anything. Every commit updates its own
-- row first, under the epoch it knows: whoever raises the epoch has waited for the commit in flight, and none sent before
-- comes after.
CREATE TABLE instance (
  no      bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name    text        NOT NULL COLLATE "C" UNIQUE,
  until   timestamptz NOT NULL,
  epoch   bigint      NOT NULL DEFAULT 0,
  records bigint      NOT NULL DEFAULT 0,
  bytes   bigint      NOT NULL DEFAULT 0,
  stuck   bigint      NOT NULL DEFAULT 0
) WITH (fillfactor = 20);

CREATE TABLE stream (
  no         bigint  PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name       text    NOT NULL COLLATE "C" UNIQUE,
  version    bigint  NOT NULL CHECK (version >= 1),
  next_seq   bigint  NOT NULL CHECK (next_seq >= 0),
  closed     boolean NOT NULL,
  keep_until bigint  NOT NULL, -- Unix seconds
  running    bytea   NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX stream_due ON stream (keep_until, name) WHERE NOT closed;
CREATE INDEX stream_over ON stream (keep_until) WHERE closed;

CREATE FUNCTION stream_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.no <> OLD.no OR NEW.name <> OLD.name OR NEW.version <= OLD.version OR NEW.next_seq < OLD.next_seq THEN
    RAISE EXCEPTION 'a stream only moves forward' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER stream_moves_forward BEFORE UPDATE ON stream FOR EACH ROW EXECUTE FUNCTION stream_moves_forward();

-- Apart from the stream, for it is larger and changes seldom.
CREATE TABLE agreement (
  stream bigint PRIMARY KEY REFERENCES stream (no) ON DELETE CASCADE,
  agreed bytea  NOT NULL
);

-- What a stream uses once.
CREATE TABLE claim (
  stream bigint   NOT NULL REFERENCES stream (no) ON DELETE CASCADE,
  kind   smallint NOT NULL,
  key    bytea    NOT NULL,
  PRIMARY KEY (stream, kind, key)
);

CREATE TABLE record (
  no        bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,          -- the order of commit within a stream
  id        bytea  NOT NULL UNIQUE CHECK (octet_length(id) = 32),     -- SHA-256 of the statement with an empty unprotected header
  stream    bigint NOT NULL REFERENCES stream (no),
  seq       bigint NOT NULL CHECK (seq >= 0),
  kind      text   NOT NULL,
  at        bigint NOT NULL,                                          -- Unix seconds
  instance  text   NOT NULL,                                          -- which run of which gateway made it
  statement bytea  NOT NULL,
  verdict   bytea,
  annex     bytea  NOT NULL,                                          -- plaintext that never leaves this database
  UNIQUE (stream, seq)
);

ALTER TABLE record ALTER COLUMN statement SET STORAGE EXTERNAL;
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER record_stays BEFORE UPDATE OR TRUNCATE ON record EXECUTE FUNCTION refuse_change();

-- A decision that was served and has no outcome.
CREATE TABLE open_decision (
  record   bigint PRIMARY KEY REFERENCES record (no),
  instance bigint NOT NULL REFERENCES instance (no)
);

CREATE INDEX open_decision_of ON open_decision (instance, record);
