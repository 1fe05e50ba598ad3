-- Invariant: a statement accepted for later waits here until its outcome is inserted, and an
-- attempt has one outcome. Nothing is updated; only what has an outcome may be deleted.

CREATE TABLE inbox (
  log_id     smallint NOT NULL,
  digest     bytea    NOT NULL CHECK (octet_length(digest) = 32),
  attempt    integer  NOT NULL CHECK (attempt > 0), -- a statement that failed may be handed in again
  arrival    bigint   GENERATED ALWAYS AS IDENTITY,
  submission bytea    NOT NULL,                     -- in the sequencer's own encoding
  PRIMARY KEY (log_id, digest, attempt)
);

ALTER TABLE inbox ALTER COLUMN submission SET STORAGE EXTERNAL;
CREATE INDEX inbox_arrival ON inbox (log_id, arrival);

CREATE TABLE inbox_outcome (
  log_id  smallint NOT NULL,
  digest  bytea    NOT NULL CHECK (octet_length(digest) = 32),
  attempt integer  NOT NULL,
  idx     bigint,
  failure text,
  PRIMARY KEY (log_id, digest, attempt),
  CHECK ((idx IS NULL) <> (failure IS NULL))
);

CREATE FUNCTION inbox_keeps_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM inbox_outcome o
                  WHERE o.log_id = OLD.log_id AND o.digest = OLD.digest AND o.attempt = OLD.attempt) THEN
    RAISE EXCEPTION 'a pending inbox row is not deleted' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END $$;

CREATE TRIGGER inbox_keeps_pending BEFORE DELETE ON inbox FOR EACH ROW EXECUTE FUNCTION inbox_keeps_pending();
CREATE TRIGGER inbox_stays BEFORE UPDATE OR TRUNCATE ON inbox EXECUTE FUNCTION refuse_change();
CREATE TRIGGER inbox_outcome_stays BEFORE UPDATE OR TRUNCATE ON inbox_outcome EXECUTE FUNCTION refuse_change();
