-- The schema of a log in SQLite. One file holds one log.
--
-- Triggers refuse changes that the store promises never to make (the trait `LogStore`), whoever asks for them. Damage by
-- other means, such as an edited file, is found by `tabellion log fsck`. Times are whole Unix seconds.
--
--   log and tree          log, batch, entry, seen, guard, collateral, tile
--   inbox                 inbox, inbox_outcome
--   keys and signatures   log_key, key_announcement, head_signature, cosignature
--   lookup index          index_run, index_block, index_node, index_erased, index_value, index_state
--   custody               hold, report
--
-- Quotas have no table: one process has the file, and counts in memory.

-- === Log and tree =======================================================================================================

-- The head of the log; its update is the commit point of a batch.
-- Invariant: the log has one head, which only moves forward. Its time goes back only in a batch with a clock correction, whose
-- entry is inserted before the head moves. The head of a frozen log never moves again. A log that is being filled from an
-- archive has no leader until the copy is complete.
CREATE TABLE log (
  one       INTEGER PRIMARY KEY CHECK (one = 1),
  origin    TEXT    NOT NULL,
  epoch     INTEGER NOT NULL,                                  -- fencing: raised when a process takes the lead
  size      INTEGER NOT NULL,
  root      BLOB    NOT NULL CHECK (length(root) = 32),
  edge      BLOB    NOT NULL CHECK (length(edge) % 32 = 0),    -- compact range: one hash for each bit set in the size
  batch     INTEGER NOT NULL,
  at        INTEGER NOT NULL,                                  -- time of the last batch
  policy    INTEGER NOT NULL,                                  -- index of the policy in force
  holder    TEXT    NOT NULL,                                  -- the process that took the lead last; only for display
  frozen_at INTEGER,                                           -- null: not frozen
  filling   BLOB    CHECK (length(filling) = 32)               -- SHA-256 of the archive that is being copied; null: complete
) STRICT;

CREATE TRIGGER log_moves_forward BEFORE UPDATE ON log
WHEN NEW.origin IS NOT OLD.origin OR NEW.epoch < OLD.epoch OR NEW.size < OLD.size
  OR NEW.batch < OLD.batch
  OR (NEW.at < OLD.at
    AND NOT EXISTS (SELECT 1 FROM entry WHERE idx >= OLD.size AND idx < NEW.size AND rule = 'clock-correction'))
BEGIN SELECT RAISE(ABORT, 'log: the head only moves forward'); END;

CREATE TRIGGER log_frozen_stays BEFORE UPDATE ON log
WHEN OLD.frozen_at IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'log: it is frozen'); END;

CREATE TRIGGER log_filled_when_empty BEFORE UPDATE ON log
WHEN NEW.filling IS NOT NULL AND NEW.filling IS NOT OLD.filling
  AND (OLD.filling IS NOT NULL OR OLD.batch <> 0)
BEGIN SELECT RAISE(ABORT, 'log: only an empty log can be filled'); END;

CREATE TRIGGER log_stays BEFORE DELETE ON log
BEGIN SELECT RAISE(ABORT, 'log: the head is never deleted'); END;

-- The history of heads: one row for each commit.
-- Invariant: a committed head never changes, and no size has two roots.
CREATE TABLE batch (
  batch INTEGER PRIMARY KEY,
  size  INTEGER NOT NULL UNIQUE,
  root  BLOB    NOT NULL CHECK (length(root) = 32),
  epoch INTEGER NOT NULL,
  at    INTEGER NOT NULL -- the `iat` of receipts
) STRICT;

CREATE TRIGGER batch_never_changes BEFORE UPDATE ON batch
BEGIN SELECT RAISE(ABORT, 'batch: a committed head never changes'); END;

CREATE TRIGGER batch_stays BEFORE DELETE ON batch
BEGIN SELECT RAISE(ABORT, 'batch: a committed head is never deleted'); END;

-- The entries.
-- Invariant: an index has one entry for ever. The only change of an entry is its erasure: its statement and its facts go
-- together, and never while a hold lasts.
-- The statement is the last column, so that SQLite reads the others without reading it.
CREATE TABLE entry (
  idx       INTEGER PRIMARY KEY,
  digest    BLOB    NOT NULL CHECK (length(digest) = 32),   -- SHA-256 of the statement
  policy    INTEGER NOT NULL,                               -- index of the policy that admitted it
  rule      TEXT    NOT NULL,
  facts     TEXT    NOT NULL,                               -- what the decision found and the statement does not contain;
                                                            -- canonical JSON
  statement BLOB                                            -- null: erased
) STRICT;

CREATE TRIGGER entry_is_only_erased BEFORE UPDATE ON entry
WHEN NEW.statement IS NOT NULL OR NEW.facts IS NOT '{}' OR NEW.idx IS NOT OLD.idx
  OR NEW.digest IS NOT OLD.digest OR NEW.policy IS NOT OLD.policy OR NEW.rule IS NOT OLD.rule
BEGIN SELECT RAISE(ABORT, 'entry: an entry can be erased, not changed'); END;

CREATE TRIGGER entry_on_hold_stays_whole BEFORE UPDATE ON entry
WHEN EXISTS (SELECT 1 FROM hold WHERE idx = OLD.idx AND released_at IS NULL)
BEGIN SELECT RAISE(ABORT, 'entry: the entry is on hold'); END;

CREATE TRIGGER entry_stays BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'entry: an entry is never deleted'); END;

-- Index of the entry with a digest, by 128 bits of it. An ECDSA statement has two rows, as its signature has a second valid
-- form (the twin).
-- Invariant: a statement has one index for ever.
CREATE TABLE seen (
  key BLOB    NOT NULL PRIMARY KEY CHECK (length(key) = 16),
  idx INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER seen_never_changes BEFORE UPDATE ON seen
BEGIN SELECT RAISE(ABORT, 'seen: a key never changes'); END;

CREATE TRIGGER seen_stays BEFORE DELETE ON seen
BEGIN SELECT RAISE(ABORT, 'seen: a key is never deleted'); END;

-- Claims that no later entry may repeat.
-- Invariant: a claim belongs to one entry for ever.
CREATE TABLE guard (
  key BLOB    NOT NULL PRIMARY KEY,
  idx INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER guard_never_changes BEFORE UPDATE ON guard
BEGIN SELECT RAISE(ABORT, 'guard: a guard never changes'); END;

CREATE TRIGGER guard_stays BEFORE DELETE ON guard
BEGIN SELECT RAISE(ABORT, 'guard: a guard is never deleted'); END;

-- Bytes submitted with a statement, outside its leaf hash, that are needed to authenticate it again.
-- Invariant: collateral never changes, and is deleted only after its entry is erased.
CREATE TABLE collateral (
  idx   INTEGER NOT NULL,
  kind  INTEGER NOT NULL,
  bytes BLOB    NOT NULL,
  PRIMARY KEY (idx, kind)
) STRICT;

CREATE TRIGGER collateral_never_changes BEFORE UPDATE ON collateral
BEGIN SELECT RAISE(ABORT, 'collateral: bytes never change'); END;

CREATE TRIGGER collateral_goes_after_its_entry BEFORE DELETE ON collateral
WHEN (SELECT statement FROM entry WHERE idx = OLD.idx) IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'collateral: it goes with its entry'); END;

-- The tiles of the tree (C2SP tlog-tiles): 1 to 256 hashes each. A batch adds its hashes to a tile as a row of their own.
-- If many batches have filled a tile, the last one writes all of it as its first row and deletes the others.
-- Invariant: a tile only grows. Its hashes stay the beginning of the larger one, and a full tile never changes.
CREATE TABLE tile (
  level  INTEGER NOT NULL,
  number INTEGER NOT NULL,
  first  INTEGER NOT NULL CHECK (first BETWEEN 0 AND 255), -- position of the row's first hash in the tile
  data   BLOB    NOT NULL CHECK (length(data) BETWEEN 32 AND 8192 AND length(data) % 32 = 0),
  PRIMARY KEY (level, number, first)
) STRICT;

CREATE TRIGGER tile_only_grows BEFORE UPDATE ON tile
WHEN NEW.level IS NOT OLD.level OR NEW.number IS NOT OLD.number OR NEW.first IS NOT OLD.first
  OR length(NEW.data) <= length(OLD.data) OR substr(NEW.data, 1, length(OLD.data)) IS NOT OLD.data
BEGIN SELECT RAISE(ABORT, 'tile: only a partial tile may be extended'); END;

CREATE TRIGGER tile_part_is_in_the_full_tile BEFORE DELETE ON tile
WHEN OLD.first = 0 OR NOT EXISTS (
  SELECT 1 FROM tile
   WHERE level = OLD.level AND number = OLD.number AND first = 0 AND length(data) = 8192
     AND substr(data, 32 * OLD.first + 1, length(OLD.data)) = OLD.data)
BEGIN SELECT RAISE(ABORT, 'tile: its hashes would be lost'); END;

-- === Inbox ==============================================================================================================

-- Accepted statements that wait for the sequencer. Bounded in rows and bytes, in total and for each issuer; the index
-- `inbox_by_issuer` answers for the bounds without reading the submissions.
-- Invariant: a row never changes, and is deleted only after its attempt has an outcome.
-- The submission is the last column that is stored, so that SQLite reads the others without reading it.
CREATE TABLE inbox (
  attempt    INTEGER PRIMARY KEY AUTOINCREMENT,             -- the order of arrival, never used twice
  digest     BLOB    NOT NULL CHECK (length(digest) = 32),
  issuer     TEXT    NOT NULL,                              -- for display, cut to 256 bytes; empty: not known
  issuer_key BLOB    NOT NULL,                              -- the first 16 bytes of the SHA-256 of the whole issuer
  arrived_at INTEGER NOT NULL,                              -- zero: not known
  submission BLOB    NOT NULL,                              -- in the sequencer's own encoding
  bytes      INTEGER GENERATED ALWAYS AS (length(submission)) VIRTUAL
) STRICT;

CREATE INDEX inbox_by_digest ON inbox (digest);
CREATE INDEX inbox_by_issuer ON inbox (issuer_key, bytes);

CREATE TRIGGER inbox_never_changes BEFORE UPDATE ON inbox
BEGIN SELECT RAISE(ABORT, 'inbox: an attempt never changes'); END;

CREATE TRIGGER inbox_keeps_what_waits BEFORE DELETE ON inbox
WHEN NOT EXISTS (SELECT 1 FROM inbox_outcome WHERE attempt = OLD.attempt)
BEGIN SELECT RAISE(ABORT, 'inbox: a waiting statement is never deleted'); END;

-- The outcome of an attempt: an index, or the reason of a failure.
-- Invariant: an attempt has one outcome, which never changes. Failures are deleted from the oldest on when there are many.
CREATE TABLE inbox_outcome (
  no      INTEGER PRIMARY KEY,                              -- the order in which attempts ended
  attempt INTEGER NOT NULL UNIQUE,
  digest  BLOB    NOT NULL CHECK (length(digest) = 32),
  idx     INTEGER,
  failure TEXT,
  CHECK ((idx IS NULL) <> (failure IS NULL))
) STRICT;

CREATE INDEX inbox_outcome_by_digest ON inbox_outcome (digest, attempt);
CREATE INDEX inbox_outcome_failed ON inbox_outcome (no) WHERE failure IS NOT NULL;

CREATE TRIGGER inbox_outcome_never_changes BEFORE UPDATE ON inbox_outcome
BEGIN SELECT RAISE(ABORT, 'inbox_outcome: an outcome never changes'); END;

-- === Keys and signatures ================================================================================================

-- The public keys that sign heads. Of each kind, one key signs the head of any size.
-- Invariant: a key that ever signed stays listed. It is retired once, at the first size of its successor, and a mark as
-- compromised only moves to smaller sizes.
CREATE TABLE log_key (
  kid              BLOB    NOT NULL PRIMARY KEY,
  public           BLOB    NOT NULL,
  from_size        INTEGER NOT NULL,
  retired_at       INTEGER,                                 -- null: in force
  retired_size     INTEGER,                                 -- the successor's from_size
  compromised_size INTEGER                                  -- at this size and beyond, its signatures prove nothing
) STRICT;

CREATE TRIGGER log_key_only_ends BEFORE UPDATE ON log_key
WHEN NEW.kid IS NOT OLD.kid OR NEW.public IS NOT OLD.public OR NEW.from_size IS NOT OLD.from_size
  OR (OLD.retired_at IS NOT NULL
      AND (NEW.retired_at IS NOT OLD.retired_at OR NEW.retired_size IS NOT OLD.retired_size))
  OR (OLD.compromised_size IS NOT NULL
      AND (NEW.compromised_size IS NULL OR NEW.compromised_size > OLD.compromised_size))
BEGIN SELECT RAISE(ABORT, 'log_key: a key only retires, once, or is marked as compromised'); END;

CREATE TRIGGER log_key_stays BEFORE DELETE ON log_key
BEGIN SELECT RAISE(ABORT, 'log_key: a key is never deleted'); END;

-- Announced keys, each with the key that it will replace. The process that leads takes them into use.
-- Invariant: a key has at most one announced successor.
CREATE TABLE key_announcement (
  replaces BLOB    NOT NULL PRIMARY KEY REFERENCES log_key (kid),
  kid      BLOB    NOT NULL UNIQUE,
  public   BLOB    NOT NULL,
  at       INTEGER NOT NULL
) STRICT;

-- The log's signatures over heads, made and inserted after the commit.
-- Invariant: only a committed head is signed, and a signature never changes.
CREATE TABLE head_signature (
  size  INTEGER NOT NULL REFERENCES batch (size),
  kind  INTEGER NOT NULL,                                   -- 1 receipt, 2 checkpoint, 3 cosignature
  kid   BLOB    NOT NULL,
  bytes BLOB    NOT NULL,
  PRIMARY KEY (size, kind, kid)
) STRICT, WITHOUT ROWID;

CREATE INDEX head_signature_by_kind ON head_signature (kind, size);

CREATE TRIGGER head_signature_never_changes BEFORE UPDATE ON head_signature
BEGIN SELECT RAISE(ABORT, 'head_signature: the first signature stands'); END;

CREATE TRIGGER head_signature_stays BEFORE DELETE ON head_signature
BEGIN SELECT RAISE(ABORT, 'head_signature: a signature is never deleted'); END;

-- Cosignatures of witnesses.
-- Invariant: of each witness there is one cosignature of a committed head; only a newer one replaces it.
CREATE TABLE cosignature (
  size    INTEGER NOT NULL REFERENCES batch (size),
  witness BLOB    NOT NULL,
  at      INTEGER NOT NULL,                                 -- by the witness's clock
  line    BLOB    NOT NULL,                                 -- the signature line of the note
  PRIMARY KEY (size, witness)
) STRICT, WITHOUT ROWID;

CREATE INDEX cosignature_by_witness ON cosignature (witness, size);

CREATE TRIGGER cosignature_only_gets_newer BEFORE UPDATE ON cosignature
WHEN NEW.size IS NOT OLD.size OR NEW.witness IS NOT OLD.witness OR NEW.at <= OLD.at
BEGIN SELECT RAISE(ABORT, 'cosignature: only a newer one takes its place'); END;

CREATE TRIGGER cosignature_stays BEFORE DELETE ON cosignature
BEGIN SELECT RAISE(ABORT, 'cosignature: a cosignature is never deleted'); END;

-- === Lookup index =======================================================================================================

-- Keys by which entries are found. No invariant: all of it is derived from the entries and can be derived again.
-- The sorted postings of a range of leaves are a run, written under a number of its own in blocks that nobody reads
-- until the run is complete. The newest leaves are in the memory of each process.
CREATE TABLE index_run (
  build    INTEGER PRIMARY KEY,
  state    INTEGER NOT NULL,                                -- 0 begun, 1 complete, 2 to be deleted, 3 so that no trace is left
  level    INTEGER,                                         -- this and what follows: null unless it was ever complete
  number   INTEGER,
  start    INTEGER,                                         -- the first leaf
  finish   INTEGER,                                         -- the leaf after the last one
  postings INTEGER,
  blind    INTEGER,
  root     BLOB CHECK (length(root) = 32)
) STRICT;

CREATE INDEX index_run_by_state ON index_run (state, level, number);

-- Large rows, found by an index of few pages. WITHOUT ROWID they would be in the inner pages of their tree as well.
CREATE TABLE index_block (
  build INTEGER NOT NULL,
  first BLOB    NOT NULL CHECK (length(first) = 24),        -- the first posting: a key of 16 bytes, and the leaf
  bytes BLOB    NOT NULL,
  PRIMARY KEY (build, first)
) STRICT;

-- Nodes of the trees of runs over more than 512 postings, so that a proof need not hash the run again.
CREATE TABLE index_node (
  build  INTEGER NOT NULL,
  prefix BLOB    NOT NULL CHECK (length(prefix) = 25),      -- 24 bytes with zeros after the prefix, and its length in bits
  bytes  BLOB    NOT NULL CHECK (length(bytes) = 72),       -- the number of postings, and the hashes of the children
  PRIMARY KEY (build, prefix)
) STRICT, WITHOUT ROWID;

-- Entries that were erased and may still have postings in a run, or in the memory of a process.
CREATE TABLE index_erased (
  idx INTEGER PRIMARY KEY,
  no  INTEGER NOT NULL                                      -- from the sequence of the builds
) STRICT;

-- Values of some kinds, to be found by their beginning: those of each run in their order, cut into blocks.
-- WITHOUT ROWID: SQLite does not clear the free space of a page whose rows it moves, and in the pages of a separate index that
-- space would keep values of a run that was deleted because of an erasure.
CREATE TABLE index_value (
  build INTEGER NOT NULL,
  kind  INTEGER NOT NULL,
  first TEXT    NOT NULL,                                   -- the first value
  bytes BLOB    NOT NULL,                                   -- the values after it
  PRIMARY KEY (build, kind, first)
) STRICT, WITHOUT ROWID;

CREATE TABLE index_state (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  form    INTEGER NOT NULL,                                 -- the version of what is read from an entry
  next    INTEGER NOT NULL,                                 -- the number of the next build or erasure
  dropped INTEGER NOT NULL                                  -- the number of the last drop
) STRICT;

INSERT INTO index_state (one, form, next, dropped) VALUES (1, 0, 0, 0);

-- === Custody ============================================================================================================

-- Legal holds: the bytes of an entry are not erased while one lasts.
-- Invariant: a hold begins on an entry that has its bytes, ends once, and stays on record.
CREATE TABLE hold (
  no          INTEGER PRIMARY KEY,                          -- the order in which they began
  idx         INTEGER NOT NULL REFERENCES entry (idx),
  matter      TEXT    NOT NULL,                             -- the name of the case
  at          INTEGER NOT NULL,
  released_at INTEGER                                       -- null: in force
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

-- Reports of equivocation: a statement was refused because an entry had its claim already.
-- Invariant: a report never changes; only the refused statement can be erased.
CREATE TABLE report (
  no         INTEGER PRIMARY KEY,
  guard      BLOB    NOT NULL,                                -- the claim
  refused    BLOB    NOT NULL CHECK (length(refused) = 32),   -- the digest of the refused statement
  idx        INTEGER NOT NULL REFERENCES entry (idx),         -- the entry that has the claim
  registered BLOB    NOT NULL CHECK (length(registered) = 32), -- the digest of that entry
  at         INTEGER NOT NULL,
  statement  BLOB,                                            -- the refused statement; null: erased
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
