-- Invariant: a key that ever signed a head stays listed; it can be retired once, and not changed.

CREATE TABLE log_key (
  log_id     smallint NOT NULL,
  kid        bytea    NOT NULL,
  no         bigint   GENERATED ALWAYS AS IDENTITY, -- the order of publication
  public     bytea    NOT NULL,
  from_size  bigint   NOT NULL CHECK (from_size >= 0),
  retired_at bigint,                                -- Unix seconds
  PRIMARY KEY (log_id, kid)
);

CREATE FUNCTION log_key_is_only_retired() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.retired_at IS NOT NULL OR NEW.retired_at IS NULL
     OR (NEW.log_id, NEW.kid, NEW.no, NEW.public, NEW.from_size)
        IS DISTINCT FROM (OLD.log_id, OLD.kid, OLD.no, OLD.public, OLD.from_size) THEN
    RAISE EXCEPTION 'a key can be retired once, not changed' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER log_key_is_only_retired BEFORE UPDATE ON log_key FOR EACH ROW EXECUTE FUNCTION log_key_is_only_retired();
CREATE TRIGGER log_key_stays BEFORE DELETE OR TRUNCATE ON log_key EXECUTE FUNCTION refuse_change();
