//! `requestState`: the sealed state that a client returns with its retry (MCP 2026-07-28, multi round-trip requests).
//!
//! The client sees an opaque text. It contains the ticket that the retry is checked against (the caller, session,
//! route, tool, arguments, rules, expiry, and a nonce that is accepted once) and, if the question was the upstream's
//! own, the upstream's state. The text can be neither read nor changed, nor used at another gateway.
//!
//! A key is derived for each text from 256 random bits (HKDF-SHA-256), so that no key encrypts more than one text, and
//! replicas that share the secret need no common counter.
//!
//! Not here: whether a ticket fits its call (`admission::clarify`), and whether its nonce was used before: that is
//! evidence, which the decision writer reads in the transaction of the decision.

use admission::clarify::SealedCall;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::limits::MAX_REQUEST_STATE_BYTES;

/// The context of the key derivation, which names the kind of the sealed bytes.
const PURPOSE: &[u8] = b"tabellion gateway requestState 1";
/// Prefix of the texts of every such gateway; the gateway's own mark follows.
const PREFIX: &str = "tabellion.";
/// Length of the mark, in characters.
const MARK: usize = 12;
/// Number of random bytes from which the key of one text is derived.
const SALT_BYTES: usize = 32;
/// The nonce is constant, since every key seals only one text.
const NONCE: [u8; 12] = [0; 12];

/// The content of a sealed text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// The ticket that the retry is checked against.
    pub ticket: SealedCall,
    /// The upstream's own state, if its question has one.
    pub upstream: Option<String>,
}

/// Reason why a state cannot be sealed.
#[derive(Debug, Error)]
pub enum Unsealable {
    /// The system provides no randomness.
    #[error("the system gives no randomness")]
    NoRandomness(#[from] getrandom::Error),
    /// The text would be too long for [`Sealer::open`].
    #[error("the state is longer than {MAX_REQUEST_STATE_BYTES} bytes when it is sealed")]
    TooLong,
}

/// Seals and opens texts with the secret that the replicas of a gateway share.
pub struct Sealer {
    secret: Zeroizing<[u8; 32]>,
    issuer: String,
    /// Prefix of this gateway's texts. It distinguishes an altered text of this gateway from an upstream's state, even
    /// if the upstream is a gateway of the same kind.
    prefix: String,
}

impl Sealer {
    /// A sealer for the gateway `issuer`.
    #[must_use]
    pub fn new(secret: Zeroizing<[u8; 32]>, issuer: &str) -> Self {
        let mark = HEXLOWER.encode(&Sha256::digest(issuer.as_bytes()));
        let prefix = format!("{PREFIX}{}.", &mark[..MARK]);
        Self { secret, issuer: issuer.to_owned(), prefix }
    }

    /// Returns whether a text has this gateway's prefix.
    #[must_use]
    pub fn is_ours(&self, text: &str) -> bool {
        text.starts_with(&self.prefix)
    }

    /// Seals a state into a text for the client.
    ///
    /// # Errors
    /// [`Unsealable`] if the system provides no randomness, or the text would be too long for [`Sealer::open`]: an
    /// upstream's state of that length is passed on as it is, and its retry is a call like any other.
    pub fn seal(&self, sealed: &Sealed) -> Result<String, Unsealable> {
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt)?;
        let mut inside = serde_json::to_vec(sealed).unwrap_or_default();
        let aad = Aad::from(self.issuer.as_bytes());
        self.key(&salt)
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(NONCE), aad, &mut inside)
            .map_err(|_| getrandom::Error::UNEXPECTED)?;
        let text = format!("{}{}", self.prefix, BASE64URL_NOPAD.encode(&[&salt[..], &inside].concat()));
        match text.len() > MAX_REQUEST_STATE_BYTES {
            true => Err(Unsealable::TooLong),
            false => Ok(text),
        }
    }

    /// Opens a text that a client returned. `None` unless this gateway sealed it and it is unchanged.
    #[must_use]
    pub fn open(&self, text: &str) -> Option<Sealed> {
        if text.len() > MAX_REQUEST_STATE_BYTES {
            return None;
        }
        let bytes = BASE64URL_NOPAD.decode(text.strip_prefix(&self.prefix)?.as_bytes()).ok()?;
        let (salt, inside) = bytes.split_at_checked(SALT_BYTES)?;
        let mut inside = inside.to_vec();
        let aad = Aad::from(self.issuer.as_bytes());
        let nonce = Nonce::assume_unique_for_key(NONCE);
        let plain = self.key(salt).open_in_place(nonce, aad, &mut inside).ok()?;
        jose::json::read_bytes(plain).ok()
    }

    fn key(&self, salt: &[u8]) -> LessSafeKey {
        let secret = Salt::new(HKDF_SHA256, salt).extract(&self.secret[..]);
        let info = [PURPOSE];
        let key = secret.expand(&info, &CHACHA20_POLY1305).map(UnboundKey::from);
        LessSafeKey::new(key.unwrap_or_else(|_| unreachable!("a key of the cipher's own length")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use admission::clarify::Purpose;

    use super::*;

    fn sealer(secret: u8, issuer: &str) -> Sealer {
        Sealer::new(Zeroizing::new([secret; 32]), issuer)
    }

    fn sealed() -> Sealed {
        let ticket = SealedCall {
            purpose: Purpose::Upstream,
            route: "/mcp".into(),
            session_id: "s-1".into(),
            account: "sha256:00".into(),
            tool: "payments.send".into(),
            arguments: "sha256:aa".into(),
            policy: "sha256:bb".into(),
            issued: 700,
            expires: 1_000,
            nonce: "n-1".into(),
            approved: false,
        };
        Sealed { ticket, upstream: Some("theirs".into()) }
    }

    #[test]
    fn what_was_sealed_is_opened_by_a_replica_with_the_same_secret() {
        let text = sealer(1, "https://gw.example").seal(&sealed()).unwrap();
        assert_eq!(sealer(1, "https://gw.example").open(&text), Some(sealed()));
    }

    #[test]
    fn v_38_a_state_that_could_not_be_brought_back_is_not_sealed() {
        let sealer = sealer(1, "https://gw.example");
        let of = |bytes: usize| Sealed { upstream: Some("x".repeat(bytes)), ..sealed() };
        assert!(matches!(sealer.seal(&of(MAX_REQUEST_STATE_BYTES)), Err(Unsealable::TooLong)));
        let text = sealer.seal(&of(MAX_REQUEST_STATE_BYTES / 2)).unwrap();
        assert_eq!(sealer.open(&text), Some(of(MAX_REQUEST_STATE_BYTES / 2)));
    }

    #[test]
    fn no_two_texts_are_alike() {
        let sealer = sealer(1, "https://gw.example");
        assert_ne!(sealer.seal(&sealed()).unwrap(), sealer.seal(&sealed()).unwrap());
    }

    #[test]
    fn another_secret_and_another_gateway_open_nothing() {
        let text = sealer(1, "https://gw.example").seal(&sealed()).unwrap();
        assert_eq!(sealer(2, "https://gw.example").open(&text), None);
        assert_eq!(sealer(1, "https://other.example").open(&text), None);
    }

    #[test]
    fn a_state_of_another_gateway_is_not_taken_for_ours() {
        let text = sealer(1, "https://other.example").seal(&sealed()).unwrap();
        assert!(sealer(2, "https://other.example").is_ours(&text));
        assert!(!sealer(1, "https://gw.example").is_ours(&text));
    }

    #[test]
    fn a_changed_character_anywhere_is_noticed() {
        let sealer = sealer(1, "https://gw.example");
        let text = sealer.seal(&sealed()).unwrap();
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(sealer.open(&String::from_utf8(changed).unwrap()), None, "{at}");
        }
        assert_eq!(sealer.open(""), None);
        assert_eq!(sealer.open(&text[..text.len() - 1]), None);
    }
}
