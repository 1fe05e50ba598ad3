//! Sets of public keys (JWK sets, RFC 7517) as the configuration and the state folder hold them.

use jose::jwk::PublicJwk;

use crate::limits::{MAX_JWKS_BYTES, MAX_JWKS_DEPTH, MAX_JWKS_KEYS};

/// Parses a JWK set, or a single JWK, into its public keys.
///
/// # Errors
/// A description of the defect, if the text is neither.
pub fn parse(bytes: &[u8]) -> Result<Vec<PublicJwk>, String> {
    let strict = jose::json::Limits { bytes: MAX_JWKS_BYTES, depth: MAX_JWKS_DEPTH };
    let value = jose::json::parse_strict(bytes, strict).map_err(|error| error.to_string())?;
    let Some(keys) = value.get("keys") else {
        return PublicJwk::from_value(&value).map(|key| vec![key]).map_err(|error| error.to_string());
    };
    let keys = keys.as_array().filter(|keys| (1..=MAX_JWKS_KEYS).contains(&keys.len()));
    let keys = keys.ok_or_else(|| format!("a key set holds 1 to {MAX_JWKS_KEYS} keys"))?;
    keys.iter().map(|key| PublicJwk::from_value(key).map_err(|error| error.to_string())).collect()
}
