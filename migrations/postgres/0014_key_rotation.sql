-- Invariant: of each kind one key signs the head of any size; a key is retired once, at the first size of its
-- successor, and a mark as compromised only moves to smaller sizes.

ALTER TABLE log_key
  ADD COLUMN retired_size     bigint CHECK (retired_size >= 0),     -- the successor's from_size
  ADD COLUMN compromised_size bigint CHECK (compromised_size >= 0); -- from here on its signatures prove nothing

CREATE OR REPLACE FUNCTION log_key_is_only_retired() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.log_id, NEW.kid, NEW.no, NEW.public, NEW.from_size)
        IS DISTINCT FROM (OLD.log_id, OLD.kid, OLD.no, OLD.public, OLD.from_size)
     OR (OLD.retired_at IS NOT NULL
         AND (NEW.retired_at, NEW.retired_size) IS DISTINCT FROM (OLD.retired_at, OLD.retired_size))
     OR (OLD.compromised_size IS NOT NULL
         AND (NEW.compromised_size IS NULL OR NEW.compromised_size > OLD.compromised_size)) THEN
    RAISE EXCEPTION 'a key can be retired once, or marked as compromised, not changed'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

-- Keys that are to replace others; the process that leads takes them up.
CREATE TABLE key_announcement (
  log_id   smallint NOT NULL,
  replaces bytea    NOT NULL,
  kid      bytea    NOT NULL,
  public   bytea    NOT NULL,
  at       bigint   NOT NULL CHECK (at >= 0), -- Unix seconds
  PRIMARY KEY (log_id, replaces),
  UNIQUE (log_id, kid),
  FOREIGN KEY (log_id, replaces) REFERENCES log_key (log_id, kid)
);
