-- Invariant: none. What is here was read from the entries and can be read from them again.

-- By bytes: values are found by their beginning, whatever language the server speaks.
ALTER TABLE lookup ALTER COLUMN value TYPE text COLLATE "C";

-- What an entry says: to replace it, to erase it, to show it.
CREATE INDEX lookup_of_entry ON lookup (log_id, idx);

-- How far the entries were read. Rows at or beyond that size are left from before a drop.
CREATE TABLE lookup_progress (
  log_id smallint PRIMARY KEY,
  form   bigint   NOT NULL CHECK (form >= 0),
  size   bigint   NOT NULL CHECK (size >= 0)
);
