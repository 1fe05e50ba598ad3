//! Signatures. To come.
