-- Invariant: the time of the head goes back only with an entry that says so: a clock correction, in place before the head
-- moves.

CREATE OR REPLACE FUNCTION head_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.frozen_at IS NOT NULL THEN
    RAISE EXCEPTION 'the log is frozen' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.filling IS NOT NULL AND NEW.filling IS DISTINCT FROM OLD.filling
     AND (OLD.filling IS NOT NULL OR OLD.batch <> 0) THEN
    RAISE EXCEPTION 'only an empty log can be filled' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.log_id <> OLD.log_id OR NEW.origin <> OLD.origin
     OR NEW.epoch < OLD.epoch OR NEW.batch < OLD.batch
     OR NEW.size < OLD.size OR NEW.policy < OLD.policy
     OR (NEW.size = OLD.size AND (NEW.root <> OLD.root OR NEW.batch <> OLD.batch)) THEN
    RAISE EXCEPTION 'the head of a log only moves forward'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.at < OLD.at AND NOT EXISTS (
    SELECT 1 FROM entry
     WHERE log_id = OLD.log_id AND idx >= OLD.size AND idx < NEW.size AND rule = 'clock-correction') THEN
    RAISE EXCEPTION 'the time of the head only goes back with a clock correction'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
