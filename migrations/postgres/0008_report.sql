-- Invariant: a report of equivocation stays as it was written; the refused statement can be erased.

CREATE TABLE report (
  log_id     smallint NOT NULL,
  no         bigint   GENERATED ALWAYS AS IDENTITY,
  guard      bytea    NOT NULL CHECK (octet_length(guard) <= 256), -- as in `guard`
  guard_key  bytea    NOT NULL,                                    -- in full
  refused    bytea    NOT NULL CHECK (octet_length(refused) = 32),
  idx        bigint   NOT NULL,                                    -- the entry that holds the guard
  registered bytea    NOT NULL CHECK (octet_length(registered) = 32),
  at         bigint   NOT NULL,                                    -- Unix seconds
  statement  bytea,                                                -- what was refused; null: erased
  PRIMARY KEY (log_id, no),
  UNIQUE (log_id, guard, refused)
);

ALTER TABLE report ALTER COLUMN statement SET STORAGE EXTERNAL;
CREATE INDEX report_about ON report (log_id, idx, no);

CREATE FUNCTION report_only_loses_its_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.statement IS NOT NULL
     OR (NEW.log_id, NEW.no, NEW.guard, NEW.guard_key, NEW.refused, NEW.idx, NEW.registered, NEW.at)
        IS DISTINCT FROM (OLD.log_id, OLD.no, OLD.guard, OLD.guard_key, OLD.refused, OLD.idx, OLD.registered, OLD.at) THEN
    RAISE EXCEPTION 'the statement of a report can be erased, nothing else' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER report_only_loses_its_statement BEFORE UPDATE ON report FOR EACH ROW EXECUTE FUNCTION report_only_loses_its_statement();
CREATE TRIGGER report_stays BEFORE DELETE OR TRUNCATE ON report EXECUTE FUNCTION refuse_change();
