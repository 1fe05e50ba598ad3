//! The LogStore promise kept by PostgreSQL.
