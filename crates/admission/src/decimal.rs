//! Exact decimals. To come.
