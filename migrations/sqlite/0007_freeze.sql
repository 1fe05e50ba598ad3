-- Invariant: a frozen log has reached its last head, and a log that is being copied here is nobody's
-- to lead until it is all there.

ALTER TABLE log ADD COLUMN frozen_at INTEGER;                              -- Unix seconds; null: it grows
ALTER TABLE log ADD COLUMN filling BLOB CHECK (length(filling) = 32);      -- SHA-256 of what it is copied from; null: it is all there

CREATE TRIGGER log_frozen_stays BEFORE UPDATE ON log
WHEN OLD.frozen_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'log: it is frozen'); END;

CREATE TRIGGER log_filled_when_empty BEFORE UPDATE ON log
WHEN NEW.filling IS NOT NULL AND NEW.filling IS NOT OLD.filling
  AND (OLD.filling IS NOT NULL OR OLD.batch <> 0)
BEGIN SELECT RAISE(ABORT, 'log: only an empty log can be filled'); END;
