-- The schema of a gateway's evidence in PostgreSQL: sessions as streams, their records, and what the log has not received
-- yet. It lives in the PostgreSQL schema `evidence`, so that it can share a database with a log.
--
-- Triggers refuse changes that the store promises never to make, whoever asks for them. Times are whole Unix seconds, except
-- for leases.
--
--   gateway processes     instance
--   streams and records   stream, agreement, claim, record, open_decision
--   outbox                outbox, stuck, delivery
--   functions             commit_group, deliver, set_aside, put_back

-- For the triggers of rows that are never updated, and of tables that are never truncated.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;

-- === Gateway processes ===============================================================================================

-- The gateway processes, each for as long as its lease lasts.
-- Invariant: every commit first updates the row of its own process, under the epoch that the process knows. Raising the epoch
-- therefore waits for the commit in flight, and fails every commit that was sent under the old epoch.
-- A process counts what its own commits added to the outbox and took from it, so that no two processes wait for the same row;
-- only the sum over all processes has a meaning.
CREATE TABLE instance (
  no      bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name    text        NOT NULL COLLATE "C" UNIQUE,
  until   timestamptz NOT NULL,
  epoch   bigint      NOT NULL DEFAULT 0,
  records bigint      NOT NULL DEFAULT 0,
  bytes   bigint      NOT NULL DEFAULT 0,
  stuck   bigint      NOT NULL DEFAULT 0
) WITH (fillfactor = 20);

-- === Streams and records =============================================================================================

-- Invariant: a stream only moves forward, by one compare-and-swap at a time, and numbers its records from 0 without gaps.
CREATE TABLE stream (
  no         bigint  PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name       text    NOT NULL COLLATE "C" UNIQUE,
  version    bigint  NOT NULL CHECK (version >= 1),  -- compared by the next commit
  next_seq   bigint  NOT NULL CHECK (next_seq >= 0), -- number of the next record
  closed     boolean NOT NULL,
  keep_until bigint  NOT NULL,
  running    bytea   NOT NULL
) WITH (fillfactor = 50);

CREATE INDEX stream_due ON stream (keep_until, name) WHERE NOT closed;
CREATE INDEX stream_over ON stream (keep_until) WHERE closed;

CREATE FUNCTION stream_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.no <> OLD.no OR NEW.name <> OLD.name OR NEW.version <= OLD.version OR NEW.next_seq < OLD.next_seq THEN
    RAISE EXCEPTION 'a stream only moves forward' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER stream_moves_forward BEFORE UPDATE ON stream FOR EACH ROW EXECUTE FUNCTION stream_moves_forward();

-- The agreed part of a stream's state. A table of its own, as it is larger than the rest and changes seldom.
CREATE TABLE agreement (
  stream bigint PRIMARY KEY REFERENCES stream (no) ON DELETE CASCADE,
  agreed bytea  NOT NULL
);

-- Keys that a stream has used.
-- Invariant: a stream uses a key once.
CREATE TABLE claim (
  stream bigint   NOT NULL REFERENCES stream (no) ON DELETE CASCADE,
  kind   smallint NOT NULL,
  key    bytea    NOT NULL,
  PRIMARY KEY (stream, kind, key)
);

-- Invariant: a record never changes, and stays while it waits for the log or, as an open decision, for its outcome.
CREATE TABLE record (
  no        bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,          -- the order of commit within a stream
  id        bytea  NOT NULL UNIQUE CHECK (octet_length(id) = 32),     -- SHA-256 of the statement with an empty unprotected header
  stream    bigint NOT NULL REFERENCES stream (no),
  seq       bigint NOT NULL CHECK (seq >= 0),
  kind      text   NOT NULL,
  at        bigint NOT NULL,
  instance  text   NOT NULL,                                          -- name of the gateway process that made it
  statement bytea  NOT NULL,
  verdict   bytea,
  annex     bytea  NOT NULL,                                          -- plaintext that never leaves this database
  UNIQUE (stream, seq)
);

-- Signatures do not compress: PostgreSQL shall not try.
ALTER TABLE record ALTER COLUMN statement SET STORAGE EXTERNAL;

CREATE TRIGGER record_stays BEFORE UPDATE OR TRUNCATE ON record EXECUTE FUNCTION refuse_change();

-- Decisions that were served and have no outcome yet.
CREATE TABLE open_decision (
  record   bigint PRIMARY KEY REFERENCES record (no),
  instance bigint NOT NULL REFERENCES instance (no)
);

CREATE INDEX open_decision_of ON open_decision (instance, record);

-- === Outbox ==========================================================================================================

-- Records that wait for their delivery to the log.
-- Invariant: a record waits here or in `stuck` from the commit that made it until it is delivered.
CREATE TABLE outbox (
  record   bigint PRIMARY KEY REFERENCES record (no),
  instance bigint NOT NULL REFERENCES instance (no), -- the process that delivers it while its lease lasts
  bytes    bigint NOT NULL,                          -- size of its statement
  at       bigint NOT NULL                           -- time of the record; zero: it was stuck before
);

CREATE INDEX outbox_of ON outbox (instance, record);
CREATE INDEX outbox_retried ON outbox (instance, record) WHERE at = 0;

-- Records that the log refused. A table of its own, so that they do not delay the others.
CREATE TABLE stuck (
  record   bigint PRIMARY KEY REFERENCES record (no),
  instance bigint NOT NULL REFERENCES instance (no),
  bytes    bigint NOT NULL,
  at       bigint NOT NULL,
  why      text   NOT NULL
);

CREATE INDEX stuck_of ON stuck (instance);

-- Delivered records.
CREATE TABLE delivery (
  record     bigint PRIMARY KEY REFERENCES record (no) ON DELETE CASCADE,
  leaf_index bigint,
  receipt    bytea
);

CREATE FUNCTION record_waits() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (record, instance, bytes, at)
  SELECT made.no, instance.no, octet_length(made.statement), made.at
    FROM made JOIN instance ON instance.name = made.instance;
  RETURN NULL;
END $$;

CREATE TRIGGER record_waits AFTER INSERT ON record REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION record_waits();

CREATE FUNCTION what_waits_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM delivery WHERE record = OLD.record)
     AND NOT (TG_TABLE_NAME = 'outbox' AND EXISTS (SELECT FROM stuck WHERE record = OLD.record))
     AND NOT (TG_TABLE_NAME = 'stuck' AND EXISTS (SELECT FROM outbox WHERE record = OLD.record)) THEN
    RAISE EXCEPTION 'what waits stays until it is delivered' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN OLD;
END $$;

CREATE TRIGGER outbox_keeps_what_waits BEFORE DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION what_waits_stays();
CREATE TRIGGER stuck_keeps_what_waits BEFORE DELETE ON stuck FOR EACH ROW EXECUTE FUNCTION what_waits_stays();

-- === Functions =======================================================================================================

-- A commit is one call, so that no client holds a lock while it waits for the network.
--
-- Writes a group of changes to streams and returns an empty array; or, if a stream is not at the version that the group
-- expects or relied on, or has used a claim already, writes nothing and returns the names of those streams. A stream that is
-- only relied on is not locked: who changes it afterwards comes after this commit. The arrays of a table have one
-- element for each row. `record_streams` and `claim_streams` are positions in `names`, from 1.
CREATE FUNCTION commit_group(
  me bigint, my_epoch bigint,
  names text[], froms bigint[], tos bigint[], first_seqs bigint[], counts bigint[],
  closeds boolean[], keep_untils bigint[], runnings bytea[], agreeds bytea[],
  record_streams int[], ids bytea[], seqs bigint[], kinds text[], ats bigint[],
  statements bytea[], verdicts bytea[], annexes bytea[],
  opened bytea[], settled bytea[],
  claim_streams int[], claim_kinds smallint[], claim_keys bytea[],
  relied_names text[], relied_versions bigint[]
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  conflicts text[];
  numbers   bigint[];
  my_name   text;
  made      bigint;
  wrong     text;
BEGIN
  -- First of all: `happened` waits for this row.
  UPDATE instance SET records = records + cardinality(ids),
                      bytes = bytes + (SELECT coalesce(sum(octet_length(s)), 0) FROM unnest(statements) s)
   WHERE no = me AND epoch = my_epoch RETURNING name INTO my_name;
  IF my_name IS NULL THEN
    RAISE EXCEPTION 'this instance was forgotten, or asked meanwhile whether an earlier commit happened' USING ERRCODE = 'TB404';
  END IF;

  -- In order of name, so that no two commits wait for each other.
  WITH locked AS MATERIALIZED (
    SELECT s.no, s.name, s.version, s.next_seq FROM stream s WHERE s.name = ANY (names) ORDER BY s.name FOR UPDATE),
  compared AS (
    SELECT m.name, l.no, l.version IS DISTINCT FROM m.from_version AS differs,
           coalesce(l.next_seq, 0) <> coalesce(m.first_seq, l.next_seq, 0) AS gap
      FROM unnest(names, froms, first_seqs) AS m (name, from_version, first_seq) LEFT JOIN locked l ON l.name = m.name)
  SELECT array_agg(c.name) FILTER (WHERE c.differs), min(c.name) FILTER (WHERE c.gap) INTO conflicts, wrong FROM compared c;
  IF conflicts IS NULL AND cardinality(relied_names) > 0 THEN
    SELECT array_agg(r.name) INTO conflicts
      FROM unnest(relied_names, relied_versions) AS r (name, version) LEFT JOIN stream s ON s.name = r.name
     WHERE s.version IS DISTINCT FROM r.version;
  END IF;
  IF conflicts IS NULL AND cardinality(claim_keys) > 0 THEN
    SELECT array_agg(DISTINCT s.name) INTO conflicts
      FROM unnest(claim_streams, claim_kinds, claim_keys) AS c (place, kind, key)
      JOIN stream s ON s.name = names[c.place]
      JOIN claim k ON k.stream = s.no AND k.kind = c.kind AND k.key = c.key;
  END IF;
  IF conflicts IS NOT NULL THEN
    -- Nothing but the count was written.
    UPDATE instance SET records = records - cardinality(ids),
                        bytes = bytes - (SELECT coalesce(sum(octet_length(s)), 0) FROM unnest(statements) s)
     WHERE no = me;
    RETURN conflicts;
  END IF;
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION 'records out of sequence: %', wrong USING ERRCODE = 'TB422';
  END IF;

  UPDATE stream s
     SET version = m.to_version, next_seq = s.next_seq + m.records,
         closed = CASE WHEN m.keep_until IS NULL THEN s.closed ELSE m.closed END,
         keep_until = coalesce(m.keep_until, s.keep_until), running = m.running
    FROM unnest(names, froms, tos, counts, closeds, keep_untils, runnings)
         AS m (name, from_version, to_version, records, closed, keep_until, running)
   WHERE s.name = m.name AND m.from_version IS NOT NULL;

  INSERT INTO stream (name, version, next_seq, closed, keep_until, running)
  SELECT m.name, m.to_version, m.records, m.closed, m.keep_until, m.running
    FROM unnest(names, froms, tos, counts, closeds, keep_untils, runnings)
         AS m (name, from_version, to_version, records, closed, keep_until, running)
   WHERE m.from_version IS NULL ORDER BY m.name
      ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS made = ROW_COUNT;
  IF made <> (SELECT count(*) FROM unnest(froms) f WHERE f IS NULL) THEN
    RAISE EXCEPTION 'another commit made a stream' USING ERRCODE = 'TB409';
  END IF;

  SELECT array_agg(s.no ORDER BY m.place) INTO numbers
    FROM unnest(names) WITH ORDINALITY AS m (name, place) JOIN stream s ON s.name = m.name;

  INSERT INTO agreement (stream, agreed)
  SELECT numbers[m.place], m.agreed FROM unnest(agreeds) WITH ORDINALITY AS m (agreed, place) WHERE m.agreed IS NOT NULL
      ON CONFLICT (stream) DO UPDATE SET agreed = excluded.agreed;

  IF cardinality(ids) > 0 THEN
    INSERT INTO record (id, stream, seq, kind, at, instance, statement, verdict, annex)
    SELECT r.id, numbers[r.stream], r.seq, r.kind, r.at, my_name, r.statement, r.verdict, r.annex
      FROM unnest(record_streams, ids, seqs, kinds, ats, statements, verdicts, annexes) WITH ORDINALITY
           AS r (stream, id, seq, kind, at, statement, verdict, annex, place)
     ORDER BY r.place;
  END IF;
  IF cardinality(opened) > 0 THEN
    INSERT INTO open_decision (record, instance) SELECT r.no, me FROM record r WHERE r.id = ANY (opened);
  END IF;
  IF cardinality(settled) > 0 THEN
    DELETE FROM open_decision WHERE record IN (SELECT r.no FROM record r WHERE r.id = ANY (settled));
  END IF;
  IF cardinality(claim_keys) > 0 THEN
    INSERT INTO claim (stream, kind, key)
    SELECT numbers[c.place], c.kind, c.key FROM unnest(claim_streams, claim_kinds, claim_keys) AS c (place, kind, key);
  END IF;
  RETURN '{}';
END $$;

-- Marks records as delivered; a leaf index or receipt that is known already stays.
CREATE FUNCTION deliver(me bigint, ids bytea[], leaf_indexes bigint[], receipts bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  from_outbox  bigint;
  outbox_bytes bigint;
  from_stuck   bigint;
  stuck_bytes  bigint;
BEGIN
  INSERT INTO delivery (record, leaf_index, receipt)
  SELECT r.no, d.leaf_index, d.receipt
    FROM unnest(ids, leaf_indexes, receipts) AS d (id, leaf_index, receipt) JOIN record r ON r.id = d.id ORDER BY r.no
      ON CONFLICT (record) DO UPDATE
     SET leaf_index = coalesce(delivery.leaf_index, excluded.leaf_index),
         receipt = coalesce(delivery.receipt, excluded.receipt);
  WITH gone AS (
    DELETE FROM outbox o USING record r WHERE r.no = o.record AND r.id = ANY (ids) RETURNING o.bytes)
  SELECT count(*), coalesce(sum(g.bytes), 0)::bigint INTO from_outbox, outbox_bytes FROM gone g;
  -- In a statement of its own: the one above may have waited for a process that moved records to `stuck`.
  WITH freed AS (
    DELETE FROM stuck k USING record r WHERE r.no = k.record AND r.id = ANY (ids) RETURNING k.bytes)
  SELECT count(*), coalesce(sum(f.bytes), 0)::bigint INTO from_stuck, stuck_bytes FROM freed f;
  UPDATE instance i SET records = i.records - from_outbox - from_stuck, bytes = i.bytes - outbox_bytes - stuck_bytes,
                        stuck = i.stuck - from_stuck
   WHERE i.no = me;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'this instance was forgotten' USING ERRCODE = 'TB404';
  END IF;
END $$;

-- Moves records from the outbox to `stuck`, each with its reason.
CREATE FUNCTION set_aside(me bigint, refused_ids bytea[], reasons text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  numbers bigint[];
BEGIN
  -- Waits for a process that is delivering one of them: then it is not in the outbox any more.
  SELECT array_agg(w.record) INTO numbers
    FROM (SELECT o.record FROM record r JOIN outbox o ON o.record = r.no WHERE r.id = ANY (refused_ids)
           ORDER BY o.record FOR UPDATE OF o) w;
  IF numbers IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO stuck (record, instance, bytes, at, why)
  SELECT DISTINCT ON (o.record) o.record, o.instance, o.bytes, o.at, n.reason
    FROM unnest(refused_ids, reasons) AS n (id, reason) JOIN record r ON r.id = n.id JOIN outbox o ON o.record = r.no
   WHERE o.record = ANY (numbers);
  DELETE FROM outbox WHERE record = ANY (numbers);
  UPDATE instance SET stuck = instance.stuck + cardinality(numbers) WHERE no = me;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'this instance was forgotten' USING ERRCODE = 'TB404';
  END IF;
END $$;

-- Moves all stuck records back into the outbox, and returns their number. Their time there is 0, so that they do not count
-- for the age of the oldest waiting record.
CREATE FUNCTION put_back(me bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  numbers bigint[];
BEGIN
  SELECT array_agg(k.record) INTO numbers FROM (SELECT record FROM stuck ORDER BY record FOR UPDATE) k;
  IF numbers IS NULL THEN
    RETURN 0;
  END IF;
  INSERT INTO outbox (record, instance, bytes, at)
  SELECT record, instance, bytes, 0 FROM stuck WHERE record = ANY (numbers);
  DELETE FROM stuck WHERE record = ANY (numbers);
  UPDATE instance SET stuck = instance.stuck - cardinality(numbers) WHERE no = me;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'this instance was forgotten' USING ERRCODE = 'TB404';
  END IF;
  RETURN cardinality(numbers);
END $$;
