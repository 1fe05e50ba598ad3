-- Invariant: none. What is here was read from the entries and can be read from them again.

CREATE TABLE lookup (
  kind  INTEGER NOT NULL,
  value TEXT    NOT NULL,
  idx   INTEGER NOT NULL,
  PRIMARY KEY (kind, value, idx)
) STRICT, WITHOUT ROWID;

-- What an entry says: to replace it, to erase it, to show it.
CREATE INDEX lookup_of_entry ON lookup (idx);

-- How far the entries were read. Rows at or beyond that size are left from before a drop.
CREATE TABLE lookup_progress (
  one  INTEGER PRIMARY KEY CHECK (one = 1),
  form INTEGER NOT NULL,
  size INTEGER NOT NULL
) STRICT;

INSERT INTO lookup_progress (one, form, size) VALUES (1, 0, 0);
