//! A public key as people paste it.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use thiserror::Error;

use super::{CoseKey, KeyError, PublicKey};
use crate::did::DidError;

/// Why text is no public key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyTextError {
    /// It looks like none of the forms.
    #[error("not a PEM block, a DID, a JWK, or a COSE_Key in hexadecimal or base64url")]
    Unrecognised,
    /// It has the form of a key, and is not one we can use.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It is a DID without a usable key.
    #[error(transparent)]
    Did(#[from] DidError),
}

/// Reads a public key in any of its texts: a PEM `PUBLIC KEY` block, a did:key or did:jwk, a JWK, a COSE_Key in
/// hexadecimal or base64url (its kid and alg are kept).
///
/// # Errors
/// If it is none of them, or a secret key.
pub fn read_key(text: &str) -> Result<CoseKey, KeyTextError> {
    let text = text.trim();
    if text.starts_with("-----BEGIN ") {
        return Ok(bare(PublicKey::from_spki_pem(text)?));
    }
    if text.starts_with("did:") {
        return Ok(bare(PublicKey::from_did(text)?));
    }
    if text.starts_with('{') {
        return Ok(bare(PublicKey::from_jwk_json(text.as_bytes())?));
    }
    // A COSE_Key is a map, so in base64url it never starts with a hexadecimal digit.
    let bytes = HEXLOWER_PERMISSIVE
        .decode(text.as_bytes())
        .or_else(|_| BASE64URL_NOPAD.decode(text.trim_end_matches('=').as_bytes()))
        .map_err(|_| KeyTextError::Unrecognised)?;
    if bytes.is_empty() {
        return Err(KeyTextError::Unrecognised);
    }
    Ok(CoseKey::parse(&bytes)?)
}

fn bare(key: PublicKey) -> CoseKey {
    CoseKey::bare(key)
}
