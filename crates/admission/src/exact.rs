//! Exact equality. To come.
