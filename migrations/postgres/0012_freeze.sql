-- Invariant: a frozen log has reached its last head, and a log that is being copied here is nobody's
-- to lead until it is all there.

ALTER TABLE log
  ADD COLUMN frozen_at bigint CHECK (frozen_at >= 0), -- Unix seconds; null: it grows
  ADD COLUMN filling   bytea  CHECK (octet_length(filling) = 32); -- SHA-256 of what it is copied from; null: it is all there

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
     OR NEW.epoch < OLD.epoch OR NEW.batch < OLD.batch OR NEW.at < OLD.at
     OR NEW.size < OLD.size OR NEW.policy < OLD.policy
     OR (NEW.size = OLD.size AND (NEW.root <> OLD.root OR NEW.batch <> OLD.batch)) THEN
    RAISE EXCEPTION 'the head of a log only moves forward'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
