-- Appends the rows of a batch and moves the head, if the head in force is the expected one; see rows.rs.
WITH head AS MATERIALIZED (
  SELECT log_id FROM log
   WHERE log_id = $1 AND epoch = $2 AND size = $3 AND root = $4 AND edge = $5 AND batch = $6 AND at = $7
     AND policy = $8 AND frozen_at IS NULL AND filling IS NOT DISTINCT FROM $9
     FOR UPDATE),

-- Pairs of policy and rule by which the entries were admitted. Those that no earlier entry had get the next numbers.
admitted_by AS MATERIALIZED (
  SELECT head.log_id, pair.no, pair.policy, pair.rule, admission.number
    FROM head
   CROSS JOIN UNNEST($17::bigint[], $18::text[]) WITH ORDINALITY AS pair (policy, rule, no)
    LEFT JOIN admission
           ON admission.log_id = head.log_id AND admission.policy = pair.policy AND admission.rule = pair.rule),
new_admission AS (
  INSERT INTO admission (log_id, number, policy, rule)
  SELECT log_id, (SELECT coalesce(max(number), 0) FROM admission WHERE log_id = $1) +
         row_number() OVER (ORDER BY no), policy, rule
    FROM admitted_by WHERE number IS NULL
  RETURNING number, policy, rule),
admission_number AS (
  SELECT admitted_by.no, coalesce(admitted_by.number, new_admission.number) AS number
    FROM admitted_by LEFT JOIN new_admission USING (policy, rule)),

new_entry AS (
  INSERT INTO entry (log_id, idx, digest, statement, admission, facts)
  SELECT head.log_id, $3 + row.no - 1, row.digest, row.statement, admission_number.number, row.facts
    FROM head
   CROSS JOIN UNNEST($19::bytea[], $20::bytea[], $21::bigint[], $22::text[])
              WITH ORDINALITY AS row (digest, statement, admission, facts, no)
    JOIN admission_number ON admission_number.no = row.admission
  RETURNING idx),
new_seen AS (
  INSERT INTO seen (log_id, key, idx)
  SELECT head.log_id, row.key, row.idx
    FROM head, UNNEST($23::uuid[], $24::bigint[]) AS row (key, idx)),
new_guard AS (
  INSERT INTO guard (log_id, key, idx)
  SELECT head.log_id, row.key, row.idx
    FROM head, UNNEST($25::bytea[], $26::bigint[]) AS row (key, idx)),

-- A tile that becomes full is written as a whole only if it would remain in many rows.
new_tile AS (
  INSERT INTO tile (log_id, level, no, first, data)
  SELECT head.log_id, row.level, row.no,
         CASE WHEN stored.is_scattered THEN 0 ELSE row.first END,
         CASE WHEN stored.is_scattered THEN row.filled ELSE row.added END
    FROM head
   CROSS JOIN UNNEST($27::smallint[], $28::bigint[], $29::smallint[], $30::bytea[], $31::bytea[])
              AS row (level, no, first, added, filled)
   CROSS JOIN LATERAL (
         SELECT count(*) >= $41::bigint AS is_scattered FROM tile
          WHERE row.filled IS NOT NULL AND tile.log_id = head.log_id AND tile.level = row.level
            AND tile.no = row.no) AS stored
      ON CONFLICT (log_id, level, no, first) DO UPDATE SET data = excluded.data
  RETURNING log_id, level, no, octet_length(data) = 8192 AS is_whole),
parts_of_whole_tile AS (
  DELETE FROM tile USING new_tile
   WHERE new_tile.is_whole AND tile.log_id = new_tile.log_id AND tile.level = new_tile.level
     AND tile.no = new_tile.no AND tile.first > 0),

new_batch AS (
  INSERT INTO batch (log_id, batch, size, root, epoch, at)
  SELECT head.log_id, row.batch, row.size, row.root, row.epoch, row.at
    FROM head, UNNEST($32::bigint[], $33::bigint[], $34::bytea[], $35::bigint[], $36::bigint[])
               AS row (batch, size, root, epoch, at)),
new_signature AS (
  INSERT INTO head_signature (log_id, size, kind, kid, bytes)
  SELECT head.log_id, row.size, row.kind, row.kid, row.bytes
    FROM head, UNNEST($37::bigint[], $38::smallint[], $39::bytea[], $40::bytea[])
               AS row (size, kind, kid, bytes)
      ON CONFLICT (log_id, size, kind, kid) DO NOTHING)

UPDATE log SET epoch = $10, size = $11, root = $12, edge = $13, batch = $14, at = $15, policy = $16
  FROM head
 WHERE log.log_id = head.log_id AND (SELECT count(*) FROM new_entry) = $11 - $3
