-- The schema of a log in PostgreSQL. A database holds one log, or several in schemas of their own.
--
-- Triggers refuse changes that the store promises never to make (the trait `LogStore`), for every role. `tabellion log fsck`
-- finds damage by other means. Times are whole Unix seconds.
--
--   log and tree          log, batch, admission, entry, seen, guard, collateral, tile
--   inbox                 inbox, inbox_outcome
--   keys and signatures   log_key, key_announcement, head_signature, cosignature
--   lookup index          index_run, index_block, index_node, index_erased, index_value, index_state
--   custody               hold, report
--   quotas                quota

-- For the triggers of rows that are never updated or deleted, and of tables that are never truncated.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is refused: its rows never change', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

-- === Log and tree =======================================================================================================

-- The head of the log; its update is the commit point of a batch.
-- Invariant: the log has one head, which only moves forward. Its time goes back only in a batch with a clock correction, whose
-- entry is inserted before the head moves. The head of a frozen log never moves again. A log that is being filled from an
-- archive has no leader until the copy is complete.
-- The low fill factor leaves room for updates within the same page.
CREATE TABLE log (
  one       smallint PRIMARY KEY CHECK (one = 1),
  origin    text     NOT NULL,
  epoch     bigint   NOT NULL CHECK (epoch >= 0),             -- fencing: raised when a process takes the lead, never reused
  size      bigint   NOT NULL CHECK (size >= 0),
  root      bytea    NOT NULL CHECK (octet_length(root) = 32),
  edge      bytea    NOT NULL,                                -- compact range: one hash for each bit set in the size
  batch     bigint   NOT NULL CHECK (batch >= 0),
  at        bigint   NOT NULL CHECK (at >= 0),                -- time of the last batch
  policy    bigint   NOT NULL CHECK (policy >= 0),            -- index of the policy in force
  holder    text     NOT NULL,                                -- the process that took the lead last; only for display
  frozen_at bigint   CHECK (frozen_at >= 0),                  -- null: not frozen
  filling   bytea    CHECK (octet_length(filling) = 32),      -- SHA-256 of the archive that is being copied; null: complete
  CHECK (octet_length(edge) = 32 * bit_count(size::bit(64)))
) WITH (fillfactor = 20);

CREATE FUNCTION head_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.frozen_at IS NOT NULL THEN
    RAISE EXCEPTION 'the log is frozen' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.filling IS NOT NULL AND NEW.filling IS DISTINCT FROM OLD.filling
     AND (OLD.filling IS NOT NULL OR OLD.batch <> 0) THEN
    RAISE EXCEPTION 'only an empty log can be filled' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.origin <> OLD.origin
     OR NEW.epoch < OLD.epoch OR NEW.batch < OLD.batch
     OR NEW.size < OLD.size OR NEW.policy < OLD.policy
     OR (NEW.size = OLD.size AND (NEW.root <> OLD.root OR NEW.batch <> OLD.batch)) THEN
    RAISE EXCEPTION 'the head of a log only moves forward'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.at < OLD.at AND NOT EXISTS (
    SELECT FROM entry JOIN admission ON admission.number = entry.admission
     WHERE idx >= OLD.size AND idx < NEW.size AND rule = 'clock-correction') THEN
    RAISE EXCEPTION 'the time of the head only goes back with a clock correction'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER head_moves_forward BEFORE UPDATE ON log FOR EACH ROW EXECUTE FUNCTION head_moves_forward();
CREATE TRIGGER log_stays BEFORE DELETE OR TRUNCATE ON log EXECUTE FUNCTION refuse_change();

-- The history of heads: one row for each commit.
-- Invariant: a committed head never changes, and no size has two roots.
CREATE TABLE batch (
  batch  bigint   PRIMARY KEY,
  size   bigint   NOT NULL,
  root   bytea    NOT NULL CHECK (octet_length(root) = 32),
  epoch  bigint   NOT NULL,
  at     bigint   NOT NULL, -- the `iat` of receipts
  UNIQUE (size)
);

CREATE TRIGGER batch_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON batch EXECUTE FUNCTION refuse_change();

-- The policies and rules that admitted entries. An entry has the number of its pair, because the pair itself would be
-- repeated in each entry.
-- Invariant: a number means one pair for ever.
CREATE TABLE admission (
  number integer  PRIMARY KEY,
  policy bigint   NOT NULL, -- index of the policy
  rule   text     NOT NULL, -- name of the rule in that policy
  UNIQUE (policy, rule)
);

CREATE TRIGGER admission_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON admission EXECUTE FUNCTION refuse_change();

-- The entries, partitioned by index, so that no table grows without bound.
-- Invariant: an index has one entry for ever. The only change of an entry is its erasure: its statement and its facts go
-- together, and never while a hold lasts.
-- There is no DEFAULT partition: if the partition for the next index is missing, the log is read-only, which is better than
-- rows in a partition that cannot be split.
-- The columns are in the order that needs no padding. `admission` is no foreign key: the insert takes the number from
-- the table, and a check for each entry would cost a look-up more.
CREATE TABLE entry (
  idx       bigint   PRIMARY KEY CHECK (idx >= 0),
  admission integer  NOT NULL,
  digest    bytea    NOT NULL CHECK (octet_length(digest) = 32), -- SHA-256 of the statement
  facts     text     NOT NULL,                                   -- what the decision found and the statement does not
                                                                 -- contain; canonical JSON, which jsonb would rewrite
  statement bytea                                                -- null: erased
) PARTITION BY RANGE (idx);

-- Signatures and random payloads do not compress, so PostgreSQL should not try.
ALTER TABLE entry ALTER COLUMN statement SET STORAGE EXTERNAL;

CREATE FUNCTION entry_is_only_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.statement IS NOT NULL OR NEW.facts <> '{}'
     OR (NEW.idx, NEW.digest, NEW.admission)
        IS DISTINCT FROM (OLD.idx, OLD.digest, OLD.admission) THEN
    RAISE EXCEPTION 'an entry can be erased, not changed' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF EXISTS (SELECT FROM hold WHERE idx = OLD.idx AND released_at IS NULL) THEN
    RAISE EXCEPTION 'entry % is on hold', OLD.idx USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER entry_is_only_erased BEFORE UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION entry_is_only_erased();
CREATE TRIGGER entry_stays BEFORE DELETE ON entry FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entry_is_not_emptied BEFORE TRUNCATE ON entry EXECUTE FUNCTION refuse_change();

CREATE FUNCTION entry_partition_width() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 4194304::bigint';

-- Creates the partition with that number if it is missing. It is created as a table of its own and then attached, because
-- attaching does not wait for readers and writers of the other partitions.
CREATE FUNCTION create_entry_partition(number bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  name text := 'entry_' || lpad(number::text, 8, '0');
  low  bigint := number * entry_partition_width();
BEGIN
  PERFORM pg_advisory_xact_lock('entry'::regclass::oid::int, 0);
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'entry'::regclass AND inhrelid = to_regclass(name)) THEN
    RETURN;
  END IF;
  EXECUTE format('CREATE TABLE %I (LIKE entry INCLUDING ALL)', name);
  EXECUTE format('CREATE TRIGGER entry_is_not_emptied BEFORE TRUNCATE ON %I EXECUTE FUNCTION refuse_change()', name);
  EXECUTE format('ALTER TABLE entry ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', name, low, low + entry_partition_width());
END $$;

-- A process may serve as a role that owns no table (deploy/postgres-roles.sql). A partition needs the owner's rights, so this
-- function runs with them; it can create a partition of this table and nothing else. `SET search_path` takes no expression,
-- hence the dynamic statement.
DO $$
BEGIN
  EXECUTE format(
    'ALTER FUNCTION create_entry_partition(bigint) SECURITY DEFINER SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION create_entry_partition(bigint) FROM PUBLIC;

SELECT create_entry_partition(0);

-- Index of the entry with a digest, by 128 bits of it. An ECDSA statement has two rows, as its signature has a second valid
-- form (the twin).
-- Invariant: a statement has one index for ever.
-- A table of its own, because this index in random order is half of the cost of an insert.
CREATE TABLE seen (
  key    uuid     PRIMARY KEY,
  idx    bigint   NOT NULL
);

CREATE TRIGGER seen_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON seen EXECUTE FUNCTION refuse_change();

-- Claims that no later entry may repeat. The key is a 0 byte and the claim, or a 1 byte and the SHA-256 of a long claim.
-- Invariant: a claim belongs to one entry for ever.
CREATE TABLE guard (
  key    bytea    PRIMARY KEY CHECK (octet_length(key) <= 256),
  idx    bigint   NOT NULL
);

CREATE TRIGGER guard_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON guard EXECUTE FUNCTION refuse_change();

-- Bytes submitted with a statement, outside its leaf hash, that are needed to authenticate it again.
-- Invariant: collateral never changes, and is erased only after its entry.
CREATE TABLE collateral (
  idx    bigint   NOT NULL,
  kind   smallint NOT NULL,
  no     smallint NOT NULL, -- counts those of the same kind
  bytes  bytea,             -- null: erased
  PRIMARY KEY (idx, kind, no)
);

ALTER TABLE collateral ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE FUNCTION collateral_is_only_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.bytes IS NOT NULL
     OR (NEW.idx, NEW.kind, NEW.no) IS DISTINCT FROM (OLD.idx, OLD.kind, OLD.no) THEN
    RAISE EXCEPTION 'collateral can be erased, not changed' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF EXISTS (SELECT FROM entry WHERE idx = OLD.idx AND statement IS NOT NULL) THEN
    RAISE EXCEPTION 'collateral goes with its entry' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER collateral_is_only_erased BEFORE UPDATE ON collateral FOR EACH ROW EXECUTE FUNCTION collateral_is_only_erased();
CREATE TRIGGER collateral_stays BEFORE DELETE OR TRUNCATE ON collateral EXECUTE FUNCTION refuse_change();

-- The tiles of the tree (C2SP tlog-tiles): 1 to 256 hashes each. A batch adds its hashes to a tile as a row of their own,
-- since rewriting the tile with each batch costs up to 8 KiB. If many batches have filled a tile, the last one writes all
-- of it as its first row and deletes the others.
-- Invariant: a tile only grows. Its hashes stay the beginning of the larger one, and a full tile never changes.
CREATE TABLE tile (
  level  smallint NOT NULL CHECK (level >= 0),
  no     bigint   NOT NULL CHECK (no >= 0),
  first  smallint NOT NULL CHECK (first BETWEEN 0 AND 255), -- position of the row's first hash in the tile
  data   bytea    NOT NULL CHECK (octet_length(data) BETWEEN 32 AND 8192 AND octet_length(data) % 32 = 0),
  PRIMARY KEY (level, no, first)
);

ALTER TABLE tile ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE FUNCTION tile_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.level, NEW.no, NEW.first) IS DISTINCT FROM (OLD.level, OLD.no, OLD.first)
     OR octet_length(NEW.data) <= octet_length(OLD.data)
     OR substring(NEW.data FOR octet_length(OLD.data)) <> OLD.data THEN
    RAISE EXCEPTION 'tile %/% would change instead of growing', OLD.level, OLD.no
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION tile_part_is_in_the_full_tile() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.first = 0 OR NOT EXISTS (
    SELECT FROM tile
     WHERE level = OLD.level AND no = OLD.no AND first = 0 AND octet_length(data) = 8192
       AND substring(data FROM 32 * OLD.first + 1 FOR octet_length(OLD.data)) = OLD.data) THEN
    RAISE EXCEPTION 'hashes of tile %/% would be lost', OLD.level, OLD.no
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END $$;

CREATE TRIGGER tile_only_grows BEFORE UPDATE ON tile FOR EACH ROW EXECUTE FUNCTION tile_only_grows();
CREATE TRIGGER tile_part_is_in_the_full_tile BEFORE DELETE ON tile FOR EACH ROW
  EXECUTE FUNCTION tile_part_is_in_the_full_tile();
CREATE TRIGGER tile_is_not_emptied BEFORE TRUNCATE ON tile EXECUTE FUNCTION refuse_change();

-- === Inbox ==============================================================================================================

-- Accepted statements that wait for the sequencer. Bounded in rows and bytes, in total and for each issuer; the index
-- `inbox_by_issuer` answers for the bounds without reading the submissions.
-- Invariant: a row never changes, and is deleted only after its attempt has an outcome.
CREATE TABLE inbox (
  digest     bytea    NOT NULL CHECK (octet_length(digest) = 32),
  attempt    integer  NOT NULL CHECK (attempt > 0),      -- a statement that failed may be submitted again
  arrival    bigint   GENERATED ALWAYS AS IDENTITY,      -- the order in which they are sequenced
  issuer     text     NOT NULL,                          -- for display, cut to 256 bytes; empty: not known
  issuer_key bytea    NOT NULL,                          -- the first 16 bytes of the SHA-256 of the whole issuer
  arrived_at bigint   NOT NULL,                          -- zero: not known
  submission bytea    NOT NULL,                          -- in the sequencer's own encoding
  bytes      integer  GENERATED ALWAYS AS (octet_length(submission)) STORED,
  PRIMARY KEY (digest, attempt)
);

ALTER TABLE inbox ALTER COLUMN submission SET STORAGE EXTERNAL;
CREATE INDEX inbox_arrival ON inbox (arrival);
CREATE INDEX inbox_by_issuer ON inbox (issuer_key, bytes);

-- The outcome of an attempt: an index, or the reason of a failure.
-- Invariant: an attempt has one outcome, which never changes. Failures are deleted from the oldest on when there are many.
CREATE TABLE inbox_outcome (
  digest  bytea    NOT NULL CHECK (octet_length(digest) = 32),
  attempt integer  NOT NULL,
  no      bigint   GENERATED ALWAYS AS IDENTITY,         -- the order in which attempts ended
  idx     bigint,
  failure text,
  PRIMARY KEY (digest, attempt),
  CHECK ((idx IS NULL) <> (failure IS NULL))
);

CREATE INDEX inbox_outcome_failed ON inbox_outcome (no) WHERE failure IS NOT NULL;

CREATE FUNCTION inbox_keeps_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM inbox_outcome o
                  WHERE o.digest = OLD.digest AND o.attempt = OLD.attempt) THEN
    RAISE EXCEPTION 'a pending inbox row is not deleted' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END $$;

CREATE TRIGGER inbox_keeps_pending BEFORE DELETE ON inbox FOR EACH ROW EXECUTE FUNCTION inbox_keeps_pending();
CREATE TRIGGER inbox_stays BEFORE UPDATE OR TRUNCATE ON inbox EXECUTE FUNCTION refuse_change();
CREATE TRIGGER inbox_outcome_stays BEFORE UPDATE OR TRUNCATE ON inbox_outcome EXECUTE FUNCTION refuse_change();

-- === Keys and signatures ================================================================================================

-- The public keys that sign heads. Of each kind, one key signs the head of any size.
-- Invariant: a key that ever signed stays listed. It is retired once, at the first size of its successor, and a mark as
-- compromised only moves to smaller sizes.
CREATE TABLE log_key (
  kid              bytea    PRIMARY KEY,
  no               bigint   GENERATED ALWAYS AS IDENTITY,    -- the order of publication
  public           bytea    NOT NULL,
  from_size        bigint   NOT NULL CHECK (from_size >= 0),
  retired_at       bigint,                                   -- null: in force
  retired_size     bigint   CHECK (retired_size >= 0),       -- the successor's from_size
  compromised_size bigint   CHECK (compromised_size >= 0)    -- at this size and beyond, its signatures prove nothing
);

CREATE FUNCTION log_key_is_only_retired() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.kid, NEW.no, NEW.public, NEW.from_size)
        IS DISTINCT FROM (OLD.kid, OLD.no, OLD.public, OLD.from_size)
     OR (OLD.retired_at IS NOT NULL
         AND (NEW.retired_at, NEW.retired_size) IS DISTINCT FROM (OLD.retired_at, OLD.retired_size))
     OR (OLD.compromised_size IS NOT NULL
         AND (NEW.compromised_size IS NULL OR NEW.compromised_size > OLD.compromised_size)) THEN
    RAISE EXCEPTION 'a key can be retired once, or marked as compromised, not changed'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER log_key_is_only_retired BEFORE UPDATE ON log_key FOR EACH ROW EXECUTE FUNCTION log_key_is_only_retired();
CREATE TRIGGER log_key_stays BEFORE DELETE OR TRUNCATE ON log_key EXECUTE FUNCTION refuse_change();

-- Announced keys, each with the key that it will replace. The process that leads takes them into use.
-- Invariant: a key has at most one announced successor.
CREATE TABLE key_announcement (
  replaces bytea    PRIMARY KEY,
  kid      bytea    NOT NULL,
  public   bytea    NOT NULL,
  at       bigint   NOT NULL CHECK (at >= 0),
  UNIQUE (kid),
  FOREIGN KEY (replaces) REFERENCES log_key (kid)
);

-- The log's signatures over heads, made and inserted after the commit.
-- Invariant: only a committed head is signed, and a signature never changes.
CREATE TABLE head_signature (
  size   bigint   NOT NULL,
  kind   smallint NOT NULL CHECK (kind BETWEEN 1 AND 3), -- 1 receipt, 2 checkpoint, 3 cosignature
  kid    bytea    NOT NULL,
  bytes  bytea    NOT NULL,
  PRIMARY KEY (size, kind, kid),
  FOREIGN KEY (size) REFERENCES batch (size)
);

CREATE TRIGGER head_signature_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON head_signature EXECUTE FUNCTION refuse_change();

-- Cosignatures of witnesses.
-- Invariant: of each witness there is one cosignature of a committed head; only a newer one replaces it.
CREATE TABLE cosignature (
  size    bigint   NOT NULL,
  witness bytea    NOT NULL CHECK (octet_length(witness) <= 512),
  at      bigint   NOT NULL, -- by the witness's clock
  line    bytea    NOT NULL, -- the signature line of the note
  PRIMARY KEY (size, witness),
  FOREIGN KEY (size) REFERENCES batch (size)
);

CREATE INDEX cosignature_by_witness ON cosignature (witness, size);

CREATE FUNCTION cosignature_only_gets_newer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.size, NEW.witness) IS DISTINCT FROM (OLD.size, OLD.witness) OR NEW.at <= OLD.at THEN
    RAISE EXCEPTION 'only a newer cosignature takes the place of one' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER cosignature_only_gets_newer BEFORE UPDATE ON cosignature FOR EACH ROW EXECUTE FUNCTION cosignature_only_gets_newer();
CREATE TRIGGER cosignature_stays BEFORE DELETE OR TRUNCATE ON cosignature EXECUTE FUNCTION refuse_change();

-- === Lookup index =======================================================================================================

-- Keys by which entries are found. No invariant: all of it is derived from the entries and can be derived again.
-- The sorted postings of a range of leaves are a run, written under a number of its own in blocks that are not read
-- until the run is complete. The newest leaves are in the memory of each process.
CREATE TABLE index_run (
  build    bigint   PRIMARY KEY,
  state    smallint NOT NULL,                        -- 0 begun, 1 complete, 2 to be deleted
  level    smallint,                                 -- this and what follows: null unless it was ever complete
  number   bigint,
  start    bigint,                                   -- the first leaf
  finish   bigint,                                   -- the leaf after the last one
  postings bigint,
  blind    bigint,
  root     bytea CHECK (octet_length(root) = 32)
);

CREATE INDEX index_run_by_state ON index_run (state, level, number);

CREATE TABLE index_block (
  build  bigint   NOT NULL,
  first  bytea    NOT NULL CHECK (octet_length(first) = 24), -- the first posting: a key of 16 bytes, and the leaf
  bytes  bytea    NOT NULL,
  PRIMARY KEY (build, first)
);

-- A block fits into a page and is hardly compressible.
ALTER TABLE index_block ALTER COLUMN bytes SET STORAGE PLAIN;

-- Nodes of the trees of runs over more than 512 postings, so that a proof need not hash the run again.
CREATE TABLE index_node (
  build  bigint   NOT NULL,
  prefix bytea    NOT NULL CHECK (octet_length(prefix) = 25), -- 24 bytes with zeros after the prefix, and its length in bits
  bytes  bytea    NOT NULL CHECK (octet_length(bytes) = 72),  -- the number of postings, and the hashes of the children
  PRIMARY KEY (build, prefix)
);

-- Entries that were erased and may still have postings in a run, or in the memory of a process.
CREATE TABLE index_erased (
  idx    bigint   PRIMARY KEY,
  no     bigint   NOT NULL                           -- from the sequence of the builds
);

-- Values of some kinds, to be found by their beginning: those of each run in their order, cut into blocks.
-- The collation "C" compares bytes, so that values are found by prefix whatever the locale of the server.
CREATE TABLE index_value (
  build  bigint   NOT NULL,
  kind   smallint NOT NULL,
  first  text     NOT NULL COLLATE "C",              -- the first value
  bytes  bytea    NOT NULL,                          -- the values after it
  PRIMARY KEY (build, kind, first)
);

ALTER TABLE index_value ALTER COLUMN bytes SET STORAGE PLAIN;

CREATE TABLE index_state (
  one     smallint PRIMARY KEY CHECK (one = 1),
  form    bigint   NOT NULL CHECK (form >= 0),       -- the version of what is read from an entry
  next    bigint   NOT NULL CHECK (next >= 0),       -- the number of the next build or erasure
  dropped bigint   NOT NULL CHECK (dropped >= 0)     -- the number of the last drop
);

INSERT INTO index_state (one, form, next, dropped) VALUES (1, 0, 0, 0);

-- === Custody ============================================================================================================

-- Legal holds: the bytes of an entry are not erased while one lasts.
-- Invariant: a hold begins on an entry that has its bytes, ends once, and stays on record.
CREATE TABLE hold (
  idx         bigint   NOT NULL,
  no          bigint   GENERATED ALWAYS AS IDENTITY, -- the order in which they began
  matter      text     NOT NULL,                     -- the name of the case
  at          bigint   NOT NULL,
  released_at bigint,                                -- null: in force
  PRIMARY KEY (idx, no)
);

CREATE UNIQUE INDEX hold_in_force ON hold (idx, matter) WHERE released_at IS NULL;

CREATE FUNCTION hold_begins_on_what_is_there() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM entry
                  WHERE idx = NEW.idx AND statement IS NOT NULL) THEN
    RAISE EXCEPTION 'nothing of entry % can be held', NEW.idx USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION hold_only_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.released_at IS NOT NULL OR NEW.released_at IS NULL
     OR (NEW.idx, NEW.no, NEW.matter, NEW.at)
        IS DISTINCT FROM (OLD.idx, OLD.no, OLD.matter, OLD.at) THEN
    RAISE EXCEPTION 'a hold ends once, and never changes' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER hold_begins_on_what_is_there BEFORE INSERT ON hold FOR EACH ROW EXECUTE FUNCTION hold_begins_on_what_is_there();
CREATE TRIGGER hold_only_ends BEFORE UPDATE ON hold FOR EACH ROW EXECUTE FUNCTION hold_only_ends();
CREATE TRIGGER hold_stays BEFORE DELETE OR TRUNCATE ON hold EXECUTE FUNCTION refuse_change();

-- Reports of equivocation: a statement was refused because an entry had its claim already.
-- Invariant: a report never changes; only the refused statement can be erased.
CREATE TABLE report (
  no         bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  guard      bytea    NOT NULL CHECK (octet_length(guard) <= 256),    -- the key as in `guard`
  guard_key  bytea    NOT NULL,                                       -- the claim in full
  refused    bytea    NOT NULL CHECK (octet_length(refused) = 32),    -- the digest of the refused statement
  idx        bigint   NOT NULL,                                       -- the entry that has the claim
  registered bytea    NOT NULL CHECK (octet_length(registered) = 32), -- the digest of that entry
  at         bigint   NOT NULL,
  statement  bytea,                                                   -- the refused statement; null: erased
  UNIQUE (guard, refused)
);

ALTER TABLE report ALTER COLUMN statement SET STORAGE EXTERNAL;
CREATE INDEX report_about ON report (idx, no);

CREATE FUNCTION report_only_loses_its_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.statement IS NOT NULL
     OR (NEW.no, NEW.guard, NEW.guard_key, NEW.refused, NEW.idx, NEW.registered, NEW.at)
        IS DISTINCT FROM (OLD.no, OLD.guard, OLD.guard_key, OLD.refused, OLD.idx, OLD.registered, OLD.at) THEN
    RAISE EXCEPTION 'the statement of a report can be erased, nothing else' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER report_only_loses_its_statement BEFORE UPDATE ON report FOR EACH ROW EXECUTE FUNCTION report_only_loses_its_statement();
CREATE TRIGGER report_stays BEFORE DELETE OR TRUNCATE ON report EXECUTE FUNCTION refuse_change();

-- === Quotas =============================================================================================================

-- Use of each quota in its current window. No invariant: the counters are unlogged, so a crash of the server resets them.
CREATE UNLOGGED TABLE quota (
  bucket   text     PRIMARY KEY,
  start_at bigint   NOT NULL, -- of the window
  used     bigint   NOT NULL,
  granted  bigint   NOT NULL  -- to the last caller
) WITH (fillfactor = 50);

CREATE INDEX quota_by_start ON quota (start_at);
