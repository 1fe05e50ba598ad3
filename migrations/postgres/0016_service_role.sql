-- Invariant: who only reads and writes rows can make room for entries, and change no table otherwise.

-- A process may serve as a role that owns no table (deploy/postgres-roles.sql). Making a partition takes the owner's rights;
-- this function makes one, of this table, and nothing else.
DO $$
BEGIN
  EXECUTE format(
    'ALTER FUNCTION create_entry_partition(bigint) SECURITY DEFINER SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION create_entry_partition(bigint) FROM PUBLIC;
