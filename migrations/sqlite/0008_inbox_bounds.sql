-- Invariant: the inbox is bounded in rows and bytes, in total and per issuer. What counts is read
-- from one index without touching the submissions.

ALTER TABLE inbox ADD COLUMN issuer TEXT NOT NULL DEFAULT '';         -- for display, cut to 256 bytes; empty: not known
ALTER TABLE inbox ADD COLUMN issuer_key BLOB NOT NULL DEFAULT x'';    -- 16 bytes of the whole issuer's SHA-256
ALTER TABLE inbox ADD COLUMN arrived_at INTEGER NOT NULL DEFAULT 0;   -- Unix seconds; zero: not known
ALTER TABLE inbox ADD COLUMN bytes INTEGER GENERATED ALWAYS AS (length(submission)) VIRTUAL;

CREATE INDEX inbox_by_issuer ON inbox (issuer_key, bytes);
