//! The evidence promise kept by SQLite.
