-- Invariant: the time of the head goes back only with an entry that says so: a clock correction, in place before the head
-- moves.

DROP TRIGGER log_moves_forward;

CREATE TRIGGER log_moves_forward BEFORE UPDATE ON log
WHEN NEW.origin IS NOT OLD.origin OR NEW.epoch < OLD.epoch OR NEW.size < OLD.size
  OR NEW.batch < OLD.batch
  OR (NEW.at < OLD.at
    AND NOT EXISTS (SELECT 1 FROM entry WHERE idx >= OLD.size AND idx < NEW.size AND rule = 'clock-correction'))
BEGIN SELECT RAISE(ABORT, 'log: the head only moves forward'); END;
