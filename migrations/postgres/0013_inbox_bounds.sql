-- Invariant: the inbox is bounded in rows and bytes, in total and per issuer. What counts is read
-- from one index without touching the submissions.

ALTER TABLE inbox
  ADD COLUMN issuer     text   NOT NULL DEFAULT '',                 -- for display, cut to 256 bytes; empty: not known
  ADD COLUMN issuer_key bytea  NOT NULL DEFAULT ''::bytea,          -- 16 bytes of the whole issuer's SHA-256
  ADD COLUMN arrived_at bigint NOT NULL DEFAULT 0,                  -- Unix seconds; zero: not known
  ADD COLUMN bytes      integer GENERATED ALWAYS AS (octet_length(submission)) STORED;

CREATE INDEX inbox_by_issuer ON inbox (log_id, issuer_key, bytes);
