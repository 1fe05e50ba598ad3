//! `requestState`: what the gateway gives a client to bring back (MCP 2026-07-28, multi round-trip requests).
//!
//! The client sees an opaque text. Inside is what the retry is bound to: who asked, in which session, on which route, for
//! which tool with which arguments, under which policy, until when, and a number used once. Nothing of it can be read or
//! changed, moved to another call, or shown to another gateway. Where the question was the upstream's own, its state is
//! wrapped and given back to it.
//!
//! A key is derived for each text from 256 random bits (HKDF-SHA-256), so that no number of texts wears a key out and
//! replicas that share the secret need not count together.
//!
//! Not here: whether a number was used before. That is evidence, and the desk asks it in the transaction of the decision.

use data_encoding::BASE64URL_NOPAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::limits::MAX_REQUEST_STATE_BYTES;

/// Says what the sealed bytes are, in every derivation.
const PURPOSE: &[u8] = b"tabellion gateway requestState 1";
/// Random bytes from which one text's key is derived.
const SALT_BYTES: usize = 32;
/// Every key seals once.
const NONCE: [u8; 12] = [0; 12];

/// What a retry must agree with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// The principal, as it is recorded.
    pub principal: String,
    /// The VAP session, if the call belongs to one.
    pub session: Option<String>,
    /// The route's path.
    pub route: String,
    /// The tool, by the name that the client sees.
    pub tool: String,
    /// The digest of the arguments.
    pub arguments: String,
    /// The digest of the route's rules.
    pub policy: String,
}

/// What is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// What the retry must agree with.
    pub bound: Bound,
    /// Used for one admitted call.
    pub number: String,
    /// Until when, in Unix seconds.
    pub expires: i64,
    /// Whose question it was.
    pub whose: Whose,
}

/// Whose question a state belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The gateway's: a confirmation or a clarification.
    Gateway,
    /// The upstream's, with its own state if it gave one. The call was admitted before; an approval given then still holds.
    Upstream(Option<String>),
}

/// Why a text is no state for this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// Not sealed by this gateway, or changed.
    #[error("the requestState was not made by this gateway, or was changed")]
    Foreign,
    /// Too late.
    #[error("the requestState has expired")]
    Expired,
    /// Sealed for another call.
    #[error("the requestState belongs to another call")]
    Other,
}

/// Seals and opens with the secret that the replicas of a gateway share.
pub struct Sealer {
    secret: Zeroizing<[u8; 32]>,
    issuer: String,
}

impl Sealer {
    /// A sealer of this gateway.
    #[must_use]
    pub fn new(secret: Zeroizing<[u8; 32]>, issuer: &str) -> Self {
        Self { secret, issuer: issuer.to_owned() }
    }

    /// The text for the client.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn seal(&self, sealed: &Sealed) -> Result<String, getrandom::Error> {
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt)?;
        let mut inside = serde_json::to_vec(sealed).unwrap_or_default();
        let aad = Aad::from(self.issuer.as_bytes());
        self.key(&salt)
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(NONCE), aad, &mut inside)
            .map_err(|_| getrandom::Error::UNEXPECTED)?;
        Ok(BASE64URL_NOPAD.encode(&[&salt[..], &inside].concat()))
    }

    /// What a client brought back, if this gateway sealed it.
    ///
    /// # Errors
    /// [`StateError::Foreign`].
    pub fn open(&self, text: &str) -> Result<Sealed, StateError> {
        if text.len() > MAX_REQUEST_STATE_BYTES {
            return Err(StateError::Foreign);
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| StateError::Foreign)?;
        let (salt, inside) = bytes.split_at_checked(SALT_BYTES).ok_or(StateError::Foreign)?;
        let mut inside = inside.to_vec();
        let aad = Aad::from(self.issuer.as_bytes());
        let plain = self
            .key(salt)
            .open_in_place(Nonce::assume_unique_for_key(NONCE), aad, &mut inside)
            .map_err(|_| StateError::Foreign)?;
        serde_json::from_slice(plain).map_err(|_| StateError::Foreign)
    }

    fn key(&self, salt: &[u8]) -> LessSafeKey {
        let secret = Salt::new(HKDF_SHA256, salt).extract(&self.secret[..]);
        let info = [PURPOSE];
        let key = secret.expand(&info, &CHACHA20_POLY1305).map(UnboundKey::from);
        LessSafeKey::new(key.unwrap_or_else(|_| unreachable!("a key of the cipher's own length")))
    }
}

impl Sealed {
    /// Whether the retry may use it.
    ///
    /// # Errors
    /// If it is too late, or it was sealed for something else.
    pub fn fits(&self, retry: &Bound, now: i64) -> Result<(), StateError> {
        if now >= self.expires {
            return Err(StateError::Expired);
        }
        match self.bound == *retry {
            true => Ok(()),
            false => Err(StateError::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sealer(secret: u8, issuer: &str) -> Sealer {
        Sealer::new(Zeroizing::new([secret; 32]), issuer)
    }

    fn sealed() -> Sealed {
        Sealed {
            bound: Bound {
                principal: "token:https://as.example:alice".into(),
                session: Some("s-1".into()),
                route: "/mcp".into(),
                tool: "payments.send".into(),
                arguments: "sha256:aa".into(),
                policy: "sha256:bb".into(),
            },
            number: "n-1".into(),
            expires: 1_000,
            whose: Whose::Upstream(Some("theirs".into())),
        }
    }

    #[test]
    fn what_was_sealed_is_opened_by_a_replica_with_the_same_secret() {
        let text = sealer(1, "https://gw.example").seal(&sealed()).unwrap();
        assert_eq!(sealer(1, "https://gw.example").open(&text), Ok(sealed()));
    }

    #[test]
    fn no_two_texts_are_alike() {
        let sealer = sealer(1, "https://gw.example");
        assert_ne!(sealer.seal(&sealed()).unwrap(), sealer.seal(&sealed()).unwrap());
    }

    #[test]
    fn another_secret_and_another_gateway_open_nothing() {
        let text = sealer(1, "https://gw.example").seal(&sealed()).unwrap();
        assert_eq!(sealer(2, "https://gw.example").open(&text), Err(StateError::Foreign));
        assert_eq!(sealer(1, "https://other.example").open(&text), Err(StateError::Foreign));
    }

    #[test]
    fn a_changed_character_anywhere_is_noticed() {
        let sealer = sealer(1, "https://gw.example");
        let text = sealer.seal(&sealed()).unwrap();
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(sealer.open(&String::from_utf8(changed).unwrap()), Err(StateError::Foreign), "{at}");
        }
        assert_eq!(sealer.open(""), Err(StateError::Foreign));
        assert_eq!(sealer.open(&text[..text.len() - 1]), Err(StateError::Foreign));
    }

    #[test]
    fn a_state_moved_to_another_call_does_not_fit() {
        let state = sealed();
        assert_eq!(state.fits(&state.bound, 999), Ok(()));
        let changes: [fn(&mut Bound); 6] = [
            |bound| bound.principal.push('x'),
            |bound| bound.session = None,
            |bound| bound.route.push('x'),
            |bound| bound.tool.push('x'),
            |bound| bound.arguments.push('x'),
            |bound| bound.policy.push('x'),
        ];
        for change in changes {
            let mut other = state.bound.clone();
            change(&mut other);
            assert_eq!(state.fits(&other, 999), Err(StateError::Other));
        }
    }

    #[test]
    fn a_state_is_too_late_at_its_last_second() {
        let state = sealed();
        assert_eq!(state.fits(&state.bound, 1_000), Err(StateError::Expired));
    }
}
