//! The evidence promise kept by PostgreSQL.
