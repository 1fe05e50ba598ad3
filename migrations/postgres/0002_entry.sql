-- Invariant: an index has one entry for ever, a statement has one index for ever, and a guard is
-- taken once. The only change an entry can suffer is erasure: its statement becomes null.

-- Partitioned by index, for no table grows without end. There is no DEFAULT partition: without one
-- for the next index the log is read-only, which is better than a partition that cannot be split off.
CREATE TABLE entry (
  log_id    smallint NOT NULL,
  idx       bigint   NOT NULL CHECK (idx >= 0),
  digest    bytea    NOT NULL CHECK (octet_length(digest) = 32), -- SHA-256 of the statement
  statement bytea,                                               -- null: erased
  policy    bigint   NOT NULL,
  rule      text     NOT NULL,
  facts     text     NOT NULL, -- canonical JSON; text, so that it is read as it was written
  PRIMARY KEY (log_id, idx)
) PARTITION BY RANGE (idx);

-- Signatures and random payloads do not compress: never try.
ALTER TABLE entry ALTER COLUMN statement SET STORAGE EXTERNAL;

CREATE FUNCTION entry_is_only_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.statement IS NOT NULL
     OR (NEW.log_id, NEW.idx, NEW.digest, NEW.policy, NEW.rule, NEW.facts)
        IS DISTINCT FROM (OLD.log_id, OLD.idx, OLD.digest, OLD.policy, OLD.rule, OLD.facts) THEN
    RAISE EXCEPTION 'an entry can be erased, not changed' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER entry_is_only_erased BEFORE UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION entry_is_only_erased();
CREATE TRIGGER entry_stays BEFORE DELETE ON entry FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entry_is_not_emptied BEFORE TRUNCATE ON entry EXECUTE FUNCTION refuse_change();

CREATE FUNCTION entry_partition_width() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 4194304::bigint';

-- Makes the partition of that number unless it is there. Made aside and then attached, because
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

SELECT create_entry_partition(0);

-- From 128 bits of a digest to its index. ECDSA statements have two rows, their own and their
-- twin's. Apart from `entry` because this random index is half of what an insert costs.
CREATE TABLE seen (
  log_id smallint NOT NULL,
  key    uuid     NOT NULL,
  idx    bigint   NOT NULL,
  PRIMARY KEY (log_id, key)
);

CREATE TRIGGER seen_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON seen EXECUTE FUNCTION refuse_change();

-- Claims that no later entry may repeat. The key is 0 and the claim, or 1 and SHA-256 of a long one.
CREATE TABLE guard (
  log_id smallint NOT NULL,
  key    bytea    NOT NULL CHECK (octet_length(key) <= 256),
  idx    bigint   NOT NULL,
  PRIMARY KEY (log_id, key)
);

CREATE TRIGGER guard_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON guard EXECUTE FUNCTION refuse_change();

-- What came beside a statement and is needed to authenticate it again.
CREATE TABLE collateral (
  log_id smallint NOT NULL,
  idx    bigint   NOT NULL,
  kind   smallint NOT NULL,
  no     smallint NOT NULL, -- among those of its kind
  bytes  bytea,             -- null: erased
  PRIMARY KEY (log_id, idx, kind, no)
);

ALTER TABLE collateral ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE FUNCTION collateral_is_only_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.bytes IS NOT NULL
     OR (NEW.log_id, NEW.idx, NEW.kind, NEW.no) IS DISTINCT FROM (OLD.log_id, OLD.idx, OLD.kind, OLD.no) THEN
    RAISE EXCEPTION 'collateral can be erased, not changed' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER collateral_is_only_erased BEFORE UPDATE ON collateral FOR EACH ROW EXECUTE FUNCTION collateral_is_only_erased();
CREATE TRIGGER collateral_stays BEFORE DELETE OR TRUNCATE ON collateral EXECUTE FUNCTION refuse_change();
