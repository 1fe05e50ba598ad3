-- Invariant: a commit is one statement, so no client holds a lock while a network answers.

-- Writes a group, or answers the streams that are not as it says, in which case nothing is written. The arrays of a
-- table have one element for each row; `stream` is a place in `names`, from 1.
CREATE FUNCTION commit_group(
  me bigint, my_epoch bigint,
  names text[], froms bigint[], tos bigint[], first_seqs bigint[], counts bigint[],
  closeds boolean[], keep_untils bigint[], runnings bytea[], agreeds bytea[],
  record_streams int[], ids bytea[], seqs bigint[], kinds text[], ats bigint[],
  statements bytea[], verdicts bytea[], annexes bytea[],
  opened bytea[], settled bytea[],
  claim_streams int[], claim_kinds smallint[], claim_keys bytea[]
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
     SET version = m.to_version, next_seq = s.next_seq + m.records, closed = m.closed,
         keep_until = m.keep_until, running = m.running
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
