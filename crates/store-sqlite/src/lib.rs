//! The LogStore promise kept by SQLite.
