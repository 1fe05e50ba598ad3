-- Invariant: the bytes of an entry go all at once and never while a hold lasts: a statement is
-- erased together with what was read from it, and what came beside it goes only after it.

-- What forbids the erasure of an entry. A hold ends once; ended ones stay on record.
CREATE TABLE hold (
  log_id      smallint NOT NULL,
  idx         bigint   NOT NULL,
  no          bigint   GENERATED ALWAYS AS IDENTITY, -- the order in which they began
  matter      text     NOT NULL,
  at          bigint   NOT NULL,                     -- Unix seconds
  released_at bigint,
  PRIMARY KEY (log_id, idx, no)
);

CREATE UNIQUE INDEX hold_in_force ON hold (log_id, idx, matter) WHERE released_at IS NULL;

CREATE FUNCTION hold_begins_on_what_is_there() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM entry
                  WHERE log_id = NEW.log_id AND idx = NEW.idx AND statement IS NOT NULL) THEN
    RAISE EXCEPTION 'nothing of entry % can be held', NEW.idx USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION hold_only_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.released_at IS NOT NULL OR NEW.released_at IS NULL
     OR (NEW.log_id, NEW.idx, NEW.no, NEW.matter, NEW.at)
        IS DISTINCT FROM (OLD.log_id, OLD.idx, OLD.no, OLD.matter, OLD.at) THEN
    RAISE EXCEPTION 'a hold ends once, and never changes' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER hold_begins_on_what_is_there BEFORE INSERT ON hold FOR EACH ROW EXECUTE FUNCTION hold_begins_on_what_is_there();
CREATE TRIGGER hold_only_ends BEFORE UPDATE ON hold FOR EACH ROW EXECUTE FUNCTION hold_only_ends();
CREATE TRIGGER hold_stays BEFORE DELETE OR TRUNCATE ON hold EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE FUNCTION entry_is_only_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.statement IS NOT NULL OR NEW.facts <> '{}'
     OR (NEW.log_id, NEW.idx, NEW.digest, NEW.policy, NEW.rule)
        IS DISTINCT FROM (OLD.log_id, OLD.idx, OLD.digest, OLD.policy, OLD.rule) THEN
    RAISE EXCEPTION 'an entry can be erased, not changed' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF EXISTS (SELECT FROM hold WHERE log_id = OLD.log_id AND idx = OLD.idx AND released_at IS NULL) THEN
    RAISE EXCEPTION 'entry % is on hold', OLD.idx USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION collateral_is_only_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.bytes IS NOT NULL
     OR (NEW.log_id, NEW.idx, NEW.kind, NEW.no) IS DISTINCT FROM (OLD.log_id, OLD.idx, OLD.kind, OLD.no) THEN
    RAISE EXCEPTION 'collateral can be erased, not changed' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF EXISTS (SELECT FROM entry WHERE log_id = OLD.log_id AND idx = OLD.idx AND statement IS NOT NULL) THEN
    RAISE EXCEPTION 'collateral goes with its entry' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
