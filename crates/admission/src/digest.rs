//! Digests. To come.
