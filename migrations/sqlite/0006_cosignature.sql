-- Invariant: a witness has one cosignature of each head on record, and only a newer one takes its place.

CREATE TABLE cosignature (
  size    INTEGER NOT NULL REFERENCES batch (size),
  witness BLOB    NOT NULL,
  at      INTEGER NOT NULL,       -- Unix seconds, by the witness's clock
  line    BLOB    NOT NULL,       -- the signature line of the note
  PRIMARY KEY (size, witness)
) STRICT, WITHOUT ROWID;

CREATE INDEX cosignature_by_witness ON cosignature (witness, size);

CREATE TRIGGER cosignature_only_gets_newer BEFORE UPDATE ON cosignature
WHEN NEW.size IS NOT OLD.size OR NEW.witness IS NOT OLD.witness OR NEW.at <= OLD.at
BEGIN SELECT RAISE(ABORT, 'cosignature: only a newer one takes its place'); END;

CREATE TRIGGER cosignature_stays BEFORE DELETE ON cosignature
BEGIN SELECT RAISE(ABORT, 'cosignature: a cosignature is never deleted'); END;
