-- Invariant: a report of equivocation stays as it was written; the refused statement can be erased.

CREATE TABLE report (
  no         INTEGER PRIMARY KEY,
  guard      BLOB    NOT NULL,
  refused    BLOB    NOT NULL CHECK (length(refused) = 32),
  idx        INTEGER NOT NULL REFERENCES entry (idx),       -- the entry that holds the guard
  registered BLOB    NOT NULL CHECK (length(registered) = 32),
  at         INTEGER NOT NULL,
  statement  BLOB,                                          -- what was refused; null: erased
  UNIQUE (guard, refused)
) STRICT;

CREATE INDEX report_about ON report (idx, no);

CREATE TRIGGER report_only_loses_its_statement BEFORE UPDATE ON report
WHEN NEW.statement IS NOT NULL OR NEW.no IS NOT OLD.no OR NEW.guard IS NOT OLD.guard
  OR NEW.refused IS NOT OLD.refused OR NEW.idx IS NOT OLD.idx
  OR NEW.registered IS NOT OLD.registered OR NEW.at IS NOT OLD.at
BEGIN SELECT RAISE(ABORT, 'report: only the statement may be erased'); END;

CREATE TRIGGER report_stays BEFORE DELETE ON report
BEGIN SELECT RAISE(ABORT, 'report: a report is never deleted'); END;
