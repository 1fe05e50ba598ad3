//! Patterns. To come.
