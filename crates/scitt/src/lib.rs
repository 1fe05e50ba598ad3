//! Signed Statements, Receipts and their keys: bytes to types and back.
