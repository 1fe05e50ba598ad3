-- Invariant: one file holds one log, whose head only moves forward; entries, heads, look-up keys
-- and signatures are inserted and never changed; a tile only grows, and only until it is full.
--
-- The triggers bind every writer, ours included. What they cannot see (a file edited from outside)
-- is what `tabellion log fsck` is for.

-- The commit point: the one row that moves.
CREATE TABLE log (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  origin TEXT    NOT NULL,
  epoch  INTEGER NOT NULL,                                  -- fencing: +1 at each take-over
  size   INTEGER NOT NULL,
  root   BLOB    NOT NULL CHECK (length(root) = 32),
  edge   BLOB    NOT NULL CHECK (length(edge) % 32 = 0),    -- one hash for each bit set in size
  batch  INTEGER NOT NULL,
  at     INTEGER NOT NULL,                                  -- whole Unix seconds
  policy INTEGER NOT NULL,
  holder TEXT    NOT NULL
) STRICT;

CREATE TRIGGER log_moves_forward BEFORE UPDATE ON log
WHEN NEW.origin IS NOT OLD.origin OR NEW.epoch < OLD.epoch OR NEW.size < OLD.size
  OR NEW.batch < OLD.batch OR NEW.at < OLD.at
BEGIN SELECT RAISE(ABORT, 'log: the head only moves forward'); END;

CREATE TRIGGER log_stays BEFORE DELETE ON log
BEGIN SELECT RAISE(ABORT, 'log: the head is never deleted'); END;

-- The history of heads, one row per commit. `at` is the receipts' iat.
CREATE TABLE batch (
  batch INTEGER PRIMARY KEY,
  size  INTEGER NOT NULL UNIQUE,
  root  BLOB    NOT NULL CHECK (length(root) = 32),
  epoch INTEGER NOT NULL,
  at    INTEGER NOT NULL
) STRICT;

CREATE TRIGGER batch_never_changes BEFORE UPDATE ON batch
BEGIN SELECT RAISE(ABORT, 'batch: a committed head never changes'); END;

CREATE TRIGGER batch_stays BEFORE DELETE ON batch
BEGIN SELECT RAISE(ABORT, 'batch: a committed head is never deleted'); END;

-- Signatures over committed heads, inserted after the commit. A root is signed once per kind and key.
CREATE TABLE head_signature (
  size  INTEGER NOT NULL REFERENCES batch (size),
  kind  INTEGER NOT NULL,
  kid   BLOB    NOT NULL,
  bytes BLOB    NOT NULL,
  PRIMARY KEY (size, kind, kid)
) STRICT, WITHOUT ROWID;

CREATE INDEX head_signature_by_kind ON head_signature (kind, size);

CREATE TRIGGER head_signature_never_changes BEFORE UPDATE ON head_signature
BEGIN SELECT RAISE(ABORT, 'head_signature: the first signature stands'); END;

CREATE TRIGGER head_signature_stays BEFORE DELETE ON head_signature
BEGIN SELECT RAISE(ABORT, 'head_signature: a signature is never deleted'); END;

-- The entries. The statement is last, so that reading the rest does not walk through it.
CREATE TABLE entry (
  idx       INTEGER PRIMARY KEY,
  digest    BLOB    NOT NULL CHECK (length(digest) = 32),   -- SHA-256 of the statement
  policy    INTEGER NOT NULL,
  rule      TEXT    NOT NULL,
  facts     TEXT    NOT NULL,
  statement BLOB                                            -- null: erased
) STRICT;

CREATE TRIGGER entry_only_loses_its_statement BEFORE UPDATE ON entry
WHEN NEW.statement IS NOT NULL OR NEW.idx IS NOT OLD.idx OR NEW.digest IS NOT OLD.digest
  OR NEW.policy IS NOT OLD.policy OR NEW.rule IS NOT OLD.rule OR NEW.facts IS NOT OLD.facts
BEGIN SELECT RAISE(ABORT, 'entry: only the statement may be erased'); END;

CREATE TRIGGER entry_stays BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'entry: an entry is never deleted'); END;

-- 128 bits of a digest, or of a twin's, to the entry: the judge of what is new. Never aged.
CREATE TABLE seen (
  key BLOB    NOT NULL PRIMARY KEY CHECK (length(key) = 16),
  idx INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER seen_never_changes BEFORE UPDATE ON seen
BEGIN SELECT RAISE(ABORT, 'seen: a key never changes'); END;

CREATE TRIGGER seen_stays BEFORE DELETE ON seen
BEGIN SELECT RAISE(ABORT, 'seen: a key is never deleted'); END;

-- Claims that no later entry may repeat.
CREATE TABLE guard (
  key BLOB    NOT NULL PRIMARY KEY,
  idx INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER guard_never_changes BEFORE UPDATE ON guard
BEGIN SELECT RAISE(ABORT, 'guard: a guard never changes'); END;

CREATE TRIGGER guard_stays BEFORE DELETE ON guard
BEGIN SELECT RAISE(ABORT, 'guard: a guard is never deleted'); END;

-- 1 to 256 hashes; the right-most of a level may be partial.
CREATE TABLE tile (
  level  INTEGER NOT NULL,
  number INTEGER NOT NULL,
  data   BLOB    NOT NULL CHECK (length(data) BETWEEN 32 AND 8192 AND length(data) % 32 = 0),
  PRIMARY KEY (level, number)
) STRICT;

CREATE TRIGGER tile_only_grows BEFORE UPDATE ON tile
WHEN NEW.level IS NOT OLD.level OR NEW.number IS NOT OLD.number OR length(NEW.data) <= length(OLD.data)
  OR substr(NEW.data, 1, length(OLD.data)) IS NOT OLD.data
BEGIN SELECT RAISE(ABORT, 'tile: only a partial tile may be extended'); END;

CREATE TRIGGER tile_stays BEFORE DELETE ON tile
BEGIN SELECT RAISE(ABORT, 'tile: a tile is never deleted'); END;

-- What came beside an entry and is not under its leaf hash. Erasure may delete it.
CREATE TABLE collateral (
  idx   INTEGER NOT NULL,
  kind  INTEGER NOT NULL,
  bytes BLOB    NOT NULL,
  PRIMARY KEY (idx, kind)
) STRICT;

CREATE TRIGGER collateral_never_changes BEFORE UPDATE ON collateral
BEGIN SELECT RAISE(ABORT, 'collateral: bytes never change'); END;

-- The keys that sign heads. Retirement is the one thing that happens to them, once.
CREATE TABLE log_key (
  kid        BLOB    NOT NULL PRIMARY KEY,
  public     BLOB    NOT NULL,
  from_size  INTEGER NOT NULL,
  retired_at INTEGER
) STRICT;

CREATE TRIGGER log_key_only_retires BEFORE UPDATE ON log_key
WHEN OLD.retired_at IS NOT NULL OR NEW.kid IS NOT OLD.kid OR NEW.public IS NOT OLD.public
  OR NEW.from_size IS NOT OLD.from_size
BEGIN SELECT RAISE(ABORT, 'log_key: a key only retires, and only once'); END;

CREATE TRIGGER log_key_stays BEFORE DELETE ON log_key
BEGIN SELECT RAISE(ABORT, 'log_key: a key is never deleted'); END;
