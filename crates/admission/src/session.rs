//! What a session agreed to, and what it has spent. To come.
