//! Strict JSON, JCS (RFC 8785) and JWK (RFC 7517).
