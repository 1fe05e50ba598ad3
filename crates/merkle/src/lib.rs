//! RFC 9162 hashes, proofs and tiles, without I/O.
