-- Invariant: every record waits here from the commit that made it until the log has it, and nothing but its delivery takes
-- it out.

CREATE TABLE outbox (
  record   bigint PRIMARY KEY REFERENCES record (no),
  instance bigint NOT NULL REFERENCES instance (no), -- who delivers it while its lease lasts
  bytes    bigint NOT NULL,                          -- of its statement
  at       bigint NOT NULL                           -- Unix seconds
);

CREATE INDEX outbox_of ON outbox (instance, record);

-- Apart from those that wait, so that no number of them is in the way of the others.
CREATE TABLE stuck (
  record   bigint PRIMARY KEY REFERENCES record (no),
  instance bigint NOT NULL REFERENCES instance (no),
  bytes    bigint NOT NULL,
  at       bigint NOT NULL,
  why      text   NOT NULL
);

CREATE INDEX stuck_of ON stuck (instance);

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

CREATE FUNCTION deliver(me bigint, ids bytea[], leaf_indexes bigint[], receipts bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO delivery (record, leaf_index, receipt)
  SELECT r.no, d.leaf_index, d.receipt
    FROM unnest(ids, leaf_indexes, receipts) AS d (id, leaf_index, receipt) JOIN record r ON r.id = d.id ORDER BY r.no
      ON CONFLICT (record) DO UPDATE
     SET leaf_index = coalesce(delivery.leaf_index, excluded.leaf_index),
         receipt = coalesce(delivery.receipt, excluded.receipt);
  WITH gone AS (
    DELETE FROM outbox o USING record r WHERE r.no = o.record AND r.id = ANY (ids) RETURNING o.bytes),
  freed AS (
    DELETE FROM stuck k USING record r WHERE r.no = k.record AND r.id = ANY (ids) RETURNING k.bytes),
  total AS (
    SELECT (SELECT count(*) FROM gone) AS gone, (SELECT count(*) FROM freed) AS freed,
           (SELECT coalesce(sum(b.bytes), 0) FROM (SELECT bytes FROM gone UNION ALL SELECT bytes FROM freed) b)::bigint AS bytes)
  UPDATE instance i SET records = i.records - total.gone - total.freed, bytes = i.bytes - total.bytes,
                        stuck = i.stuck - total.freed
    FROM total WHERE i.no = me;
END $$;

CREATE FUNCTION set_aside(me bigint, stuck_id bytea, reason text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  number bigint;
BEGIN
  INSERT INTO stuck (record, instance, bytes, at, why)
  SELECT o.record, o.instance, o.bytes, o.at, reason
    FROM record r JOIN outbox o ON o.record = r.no WHERE r.id = stuck_id
      ON CONFLICT DO NOTHING RETURNING record INTO number;
  IF number IS NOT NULL THEN
    DELETE FROM outbox WHERE record = number;
    UPDATE instance SET stuck = instance.stuck + 1 WHERE no = me;
  END IF;
END $$;

CREATE FUNCTION put_back(me bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  numbers bigint[];
BEGIN
  SELECT array_agg(k.record) INTO numbers FROM (SELECT record FROM stuck ORDER BY record FOR UPDATE) k;
  IF numbers IS NULL THEN
    RETURN 0;
  END IF;
  INSERT INTO outbox (record, instance, bytes, at)
  SELECT record, instance, bytes, at FROM stuck WHERE record = ANY (numbers);
  DELETE FROM stuck WHERE record = ANY (numbers);
  UPDATE instance SET stuck = instance.stuck - cardinality(numbers) WHERE no = me;
  RETURN cardinality(numbers);
END $$;
