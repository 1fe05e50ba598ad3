//! Limits. To come.
