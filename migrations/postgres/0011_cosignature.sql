-- Invariant: a witness has one cosignature of each head on record, and only a newer one takes its place.

CREATE TABLE cosignature (
  log_id  smallint NOT NULL,
  size    bigint   NOT NULL,
  witness bytea    NOT NULL CHECK (octet_length(witness) <= 512),
  at      bigint   NOT NULL, -- Unix seconds, by the witness's clock
  line    bytea    NOT NULL, -- the signature line of the note
  PRIMARY KEY (log_id, size, witness),
  FOREIGN KEY (log_id, size) REFERENCES batch (log_id, size)
);

CREATE INDEX cosignature_by_witness ON cosignature (log_id, witness, size);

CREATE FUNCTION cosignature_only_gets_newer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.log_id, NEW.size, NEW.witness) IS DISTINCT FROM (OLD.log_id, OLD.size, OLD.witness) OR NEW.at <= OLD.at THEN
    RAISE EXCEPTION 'only a newer cosignature takes the place of one' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER cosignature_only_gets_newer BEFORE UPDATE ON cosignature FOR EACH ROW EXECUTE FUNCTION cosignature_only_gets_newer();
CREATE TRIGGER cosignature_stays BEFORE DELETE OR TRUNCATE ON cosignature EXECUTE FUNCTION refuse_change();
