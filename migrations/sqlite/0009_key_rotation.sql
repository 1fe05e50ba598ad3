-- Invariant: of each kind one key signs the head of any size; a key is retired once, at the first size of its
-- successor, and a mark as compromised only moves to smaller sizes.

ALTER TABLE log_key ADD COLUMN retired_size INTEGER;     -- the successor's from_size
ALTER TABLE log_key ADD COLUMN compromised_size INTEGER; -- from here on its signatures prove nothing

DROP TRIGGER log_key_only_retires;

CREATE TRIGGER log_key_only_ends BEFORE UPDATE ON log_key
WHEN NEW.kid IS NOT OLD.kid OR NEW.public IS NOT OLD.public OR NEW.from_size IS NOT OLD.from_size
  OR (OLD.retired_at IS NOT NULL
      AND (NEW.retired_at IS NOT OLD.retired_at OR NEW.retired_size IS NOT OLD.retired_size))
  OR (OLD.compromised_size IS NOT NULL
      AND (NEW.compromised_size IS NULL OR NEW.compromised_size > OLD.compromised_size))
BEGIN SELECT RAISE(ABORT, 'log_key: a key only retires, once, or is marked as compromised'); END;

-- Keys that are to replace others; the process that leads takes them up.
CREATE TABLE key_announcement (
  replaces BLOB    NOT NULL PRIMARY KEY REFERENCES log_key (kid),
  kid      BLOB    NOT NULL UNIQUE,
  public   BLOB    NOT NULL,
  at       INTEGER NOT NULL -- Unix seconds
) STRICT;
