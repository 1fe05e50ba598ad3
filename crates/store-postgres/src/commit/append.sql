-- Appends the rows of a batch and moves the head, if the head in force is the expected one; see rows.rs.
WITH head AS MATERIALIZED (
  SELECT 1 FROM log
   WHERE epoch = $1 AND size = $2 AND root = $3 AND edge = $4 AND batch = $5 AND at = $6
     AND policy = $7 AND frozen_at IS NULL AND filling IS NOT DISTINCT FROM $8
     FOR UPDATE),

-- Pairs of policy and rule by which the entries were admitted. Those that no earlier entry had get the next numbers.
admitted_by AS MATERIALIZED (
  SELECT pair.no, pair.policy, pair.rule, admission.number
    FROM head
   CROSS JOIN UNNEST($16::bigint[], $17::text[]) WITH ORDINALITY AS pair (policy, rule, no)
    LEFT JOIN admission
           ON admission.policy = pair.policy AND admission.rule = pair.rule),
new_admission AS (
  INSERT INTO admission (number, policy, rule)
  SELECT (SELECT coalesce(max(number), 0) FROM admission) +
         row_number() OVER (ORDER BY no), policy, rule
    FROM admitted_by WHERE number IS NULL
  RETURNING number, policy, rule),
admission_number AS (
  SELECT admitted_by.no, coalesce(admitted_by.number, new_admission.number) AS number
    FROM admitted_by LEFT JOIN new_admission USING (policy, rule)),

new_entry AS (
  INSERT INTO entry (idx, digest, statement, admission, facts)
  SELECT $2 + row.no - 1, row.digest, row.statement, admission_number.number, row.facts
    FROM head
   CROSS JOIN UNNEST($18::bytea[], $19::bytea[], $20::bigint[], $21::text[])
              WITH ORDINALITY AS row (digest, statement, admission, facts, no)
    JOIN admission_number ON admission_number.no = row.admission
  RETURNING idx),
new_seen AS (
  INSERT INTO seen (key, idx)
  SELECT row.key, row.idx
    FROM head, UNNEST($22::uuid[], $23::bigint[]) AS row (key, idx)),
new_guard AS (
  INSERT INTO guard (key, idx)
  SELECT row.key, row.idx
    FROM head, UNNEST($24::bytea[], $25::bigint[]) AS row (key, idx)),

-- A tile that becomes full is written as a whole only if it would remain in many rows.
new_tile AS (
  INSERT INTO tile (level, no, first, data)
  SELECT row.level, row.no,
         CASE WHEN stored.is_scattered THEN 0 ELSE row.first END,
         CASE WHEN stored.is_scattered THEN row.filled ELSE row.added END
    FROM head
   CROSS JOIN UNNEST($26::smallint[], $27::bigint[], $28::smallint[], $29::bytea[], $30::bytea[])
              AS row (level, no, first, added, filled)
   CROSS JOIN LATERAL (
         SELECT count(*) >= $40::bigint AS is_scattered FROM tile
          WHERE row.filled IS NOT NULL AND tile.level = row.level
            AND tile.no = row.no) AS stored
      ON CONFLICT (level, no, first) DO UPDATE SET data = excluded.data
  RETURNING level, no, octet_length(data) = 8192 AS is_whole),
parts_of_whole_tile AS (
  DELETE FROM tile USING new_tile
   WHERE new_tile.is_whole AND tile.level = new_tile.level
     AND tile.no = new_tile.no AND tile.first > 0),

new_batch AS (
  INSERT INTO batch (batch, size, root, epoch, at)
  SELECT row.batch, row.size, row.root, row.epoch, row.at
    FROM head, UNNEST($31::bigint[], $32::bigint[], $33::bytea[], $34::bigint[], $35::bigint[])
               AS row (batch, size, root, epoch, at)),
new_signature AS (
  INSERT INTO head_signature (size, kind, kid, bytes)
  SELECT row.size, row.kind, row.kid, row.bytes
    FROM head, UNNEST($36::bigint[], $37::smallint[], $38::bytea[], $39::bytea[])
               AS row (size, kind, kid, bytes)
      ON CONFLICT (size, kind, kid) DO NOTHING)

UPDATE log SET epoch = $9, size = $10, root = $11, edge = $12, batch = $13, at = $14, policy = $15
  FROM head
 WHERE (SELECT count(*) FROM new_entry) = $10 - $2
