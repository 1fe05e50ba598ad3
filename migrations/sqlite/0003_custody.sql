-- Invariant: the bytes of an entry go all at once and never while a hold lasts: a statement is
-- erased together with what was read from it, and what came beside it goes only after it.

-- What forbids the erasure of an entry. A hold ends once; ended ones stay on record.
CREATE TABLE hold (
  no          INTEGER PRIMARY KEY,                          -- the order in which they began
  idx         INTEGER NOT NULL REFERENCES entry (idx),
  matter      TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  released_at INTEGER
) STRICT;

CREATE INDEX hold_by_entry ON hold (idx, no);
CREATE UNIQUE INDEX hold_in_force ON hold (idx, matter) WHERE released_at IS NULL;

CREATE TRIGGER hold_begins_on_what_is_there BEFORE INSERT ON hold
WHEN (SELECT statement FROM entry WHERE idx = NEW.idx) IS NULL
BEGIN SELECT RAISE(ABORT, 'hold: nothing of the entry can be held'); END;

CREATE TRIGGER hold_only_ends BEFORE UPDATE ON hold
WHEN OLD.released_at IS NOT NULL OR NEW.released_at IS NULL OR NEW.no IS NOT OLD.no
  OR NEW.idx IS NOT OLD.idx OR NEW.matter IS NOT OLD.matter OR NEW.at IS NOT OLD.at
BEGIN SELECT RAISE(ABORT, 'hold: a hold ends once, and never changes'); END;

CREATE TRIGGER hold_stays BEFORE DELETE ON hold
BEGIN SELECT RAISE(ABORT, 'hold: a hold stays on record'); END;

DROP TRIGGER entry_only_loses_its_statement;

CREATE TRIGGER entry_is_only_erased BEFORE UPDATE ON entry
WHEN NEW.statement IS NOT NULL OR NEW.facts IS NOT '{}' OR NEW.idx IS NOT OLD.idx
  OR NEW.digest IS NOT OLD.digest OR NEW.policy IS NOT OLD.policy OR NEW.rule IS NOT OLD.rule
BEGIN SELECT RAISE(ABORT, 'entry: an entry can be erased, not changed'); END;

CREATE TRIGGER entry_on_hold_stays_whole BEFORE UPDATE ON entry
WHEN EXISTS (SELECT 1 FROM hold WHERE idx = OLD.idx AND released_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'entry: the entry is on hold'); END;

CREATE TRIGGER collateral_goes_after_its_entry BEFORE DELETE ON collateral
WHEN (SELECT statement FROM entry WHERE idx = OLD.idx) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'collateral: it goes with its entry'); END;
