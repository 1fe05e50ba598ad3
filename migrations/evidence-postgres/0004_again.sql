-- Invariant: what the log refused once and is tried again has no time (0) in the outbox: the age of what waits is that of the
-- others.

CREATE OR REPLACE FUNCTION put_back(me bigint) RETURNS bigint LANGUAGE plpgsql AS $$
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
  RETURN cardinality(numbers);
END $$;
