-- The roles of a log's PostgreSQL database. Run it once as a superuser, in the log's own database:
--
--   psql -v ON_ERROR_STOP=1 -f postgres-roles.sql log
--
-- tabellion_owner owns the tables. `tabellion log migrate` connects as a member of it, at the first start and after an upgrade.
-- tabellion_service reads and writes rows. Every process that serves connects as a member of it, with `db_migrate = false`: whoever
-- takes over such a process can neither drop the triggers that keep entries from being changed, nor disable them.
-- tabellion_reader only reads: `tabellion log fsck`, `audit` and `backup create`.

CREATE ROLE tabellion_owner NOLOGIN;
CREATE ROLE tabellion_service NOLOGIN;
CREATE ROLE tabellion_reader NOLOGIN;

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT CREATE, USAGE ON SCHEMA public TO tabellion_owner;
GRANT USAGE ON SCHEMA public TO tabellion_service, tabellion_reader;

-- What the owner makes from now on. Not TRUNCATE, not TRIGGER.
ALTER DEFAULT PRIVILEGES FOR ROLE tabellion_owner IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO tabellion_service;
ALTER DEFAULT PRIVILEGES FOR ROLE tabellion_owner IN SCHEMA public
  GRANT USAGE ON SEQUENCES TO tabellion_service;
ALTER DEFAULT PRIVILEGES FOR ROLE tabellion_owner IN SCHEMA public
  GRANT EXECUTE ON FUNCTIONS TO tabellion_service;
ALTER DEFAULT PRIVILEGES FOR ROLE tabellion_owner IN SCHEMA public
  GRANT SELECT ON TABLES TO tabellion_reader;

-- A log in a schema of its own needs the same with that schema in the place of public, and
-- `?options[search_path]=schema` in its URLs.

-- Logins, with passwords of your own. What a login makes belongs to its group: that is what `role` sets.
--   CREATE ROLE log_owner LOGIN PASSWORD '…' IN ROLE tabellion_owner;
--   ALTER ROLE log_owner SET role = tabellion_owner;
--   CREATE ROLE log_service LOGIN PASSWORD '…' IN ROLE tabellion_service;
-- Tables that were made before, by another role, are given over with
--   REASSIGN OWNED BY old_role TO tabellion_owner;
-- and the same GRANTs on ALL TABLES, ALL SEQUENCES and ALL FUNCTIONS IN SCHEMA public.
