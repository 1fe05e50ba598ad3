//! Reads a public key from text in any supported form, as users paste it.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use thiserror::Error;

use super::{CoseKey, DidError, KeyError, PublicKey};

/// Error of [`read_key`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyTextError {
    /// The text has none of the supported forms.
    #[error("not a PEM block, a DID, a JWK, or a COSE_Key in hexadecimal or base64url")]
    Unrecognised,
    /// The text has the form of a key, but the key is not usable.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The text is a DID without a usable key.
    #[error(transparent)]
    Did(#[from] DidError),
}

/// Reads a public key from text: a PEM `PUBLIC KEY` block, a `did:key` or `did:jwk`, a JWK, or a COSE_Key in
/// hexadecimal or base64url, whose `kid` and `alg` are kept.
///
/// # Errors
/// Returns a [`KeyTextError`] if the text has none of these forms, or contains a secret key.
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
    // A COSE_Key is a map: its base64url form begins with a letter from `o` to `v`, so it is never valid hexadecimal.
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
