-- Invariant: a tile only grows: what it held stays its beginning, and a full tile never changes.

CREATE TABLE tile (
  log_id smallint NOT NULL,
  level  smallint NOT NULL CHECK (level >= 0),
  no     bigint   NOT NULL CHECK (no >= 0),
  data   bytea    NOT NULL CHECK (octet_length(data) BETWEEN 32 AND 8192 AND octet_length(data) % 32 = 0),
  PRIMARY KEY (log_id, level, no)
);

ALTER TABLE tile ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE FUNCTION tile_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.log_id, NEW.level, NEW.no) IS DISTINCT FROM (OLD.log_id, OLD.level, OLD.no)
     OR octet_length(NEW.data) <= octet_length(OLD.data)
     OR substring(NEW.data FOR octet_length(OLD.data)) <> OLD.data THEN
    RAISE EXCEPTION 'tile %/% would change instead of growing', OLD.level, OLD.no
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER tile_only_grows BEFORE UPDATE ON tile FOR EACH ROW EXECUTE FUNCTION tile_only_grows();
CREATE TRIGGER tile_stays BEFORE DELETE OR TRUNCATE ON tile EXECUTE FUNCTION refuse_change();
