-- Invariant: a log has one head, which only moves forward; every head it ever had stays on record
-- as it was; and only a head on record is signed.

-- What is written once stays as it was written. TRUNCATE is refused with it.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is refused: its rows never change', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

-- One row per log: the commit point. A low fill factor keeps its updates inside one page.
CREATE TABLE log (
  log_id smallint PRIMARY KEY,
  origin text     NOT NULL,
  epoch  bigint   NOT NULL CHECK (epoch >= 0), -- fencing: raised at each take-over, never reused
  size   bigint   NOT NULL CHECK (size >= 0),
  root   bytea    NOT NULL CHECK (octet_length(root) = 32),
  edge   bytea    NOT NULL,                    -- the compact range: one hash per bit set in the size
  batch  bigint   NOT NULL CHECK (batch >= 0),
  at     bigint   NOT NULL CHECK (at >= 0),    -- whole Unix seconds of the last batch
  policy bigint   NOT NULL CHECK (policy >= 0),
  holder text     NOT NULL,                    -- who took over last; for people
  CHECK (octet_length(edge) = 32 * bit_count(size::bit(64)))
) WITH (fillfactor = 20);

CREATE FUNCTION head_moves_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.log_id <> OLD.log_id OR NEW.origin <> OLD.origin
     OR NEW.epoch < OLD.epoch OR NEW.batch < OLD.batch OR NEW.at < OLD.at
     OR NEW.size < OLD.size OR NEW.policy < OLD.policy
     OR (NEW.size = OLD.size AND (NEW.root <> OLD.root OR NEW.batch <> OLD.batch)) THEN
    RAISE EXCEPTION 'the head of a log only moves forward'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER head_moves_forward BEFORE UPDATE ON log FOR EACH ROW EXECUTE FUNCTION head_moves_forward();
CREATE TRIGGER log_stays BEFORE DELETE OR TRUNCATE ON log EXECUTE FUNCTION refuse_change();

-- The history of heads: one row per commit.
CREATE TABLE batch (
  log_id smallint NOT NULL,
  batch  bigint   NOT NULL,
  size   bigint   NOT NULL,
  root   bytea    NOT NULL CHECK (octet_length(root) = 32),
  epoch  bigint   NOT NULL,
  at     bigint   NOT NULL, -- the receipts' iat
  PRIMARY KEY (log_id, batch),
  UNIQUE (log_id, size)     -- no size has two roots
);

CREATE TRIGGER batch_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON batch EXECUTE FUNCTION refuse_change();

-- Signatures are made and inserted after the commit.
CREATE TABLE head_signature (
  log_id smallint NOT NULL,
  size   bigint   NOT NULL,
  kind   smallint NOT NULL CHECK (kind BETWEEN 1 AND 3), -- receipt, checkpoint, cosignature
  kid    bytea    NOT NULL,
  bytes  bytea    NOT NULL,
  PRIMARY KEY (log_id, size, kind, kid),
  FOREIGN KEY (log_id, size) REFERENCES batch (log_id, size)
);

CREATE INDEX head_signature_newest ON head_signature (log_id, kind, size, kid);
CREATE TRIGGER head_signature_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON head_signature EXECUTE FUNCTION refuse_change();
