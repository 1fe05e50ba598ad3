//! Signatures of Standard Webhooks 1.0, over `id.timestamp.body`.
//!
//! `v1a,` is Ed25519 with a dedicated key (`whsk_` and `whpk_`), so that a compromised receiver cannot forge messages;
//! `v1,` is HMAC-SHA-256 with a secret shared by receiver and monitor (`whsec_`).

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use ring::hmac;
use zeroize::Zeroizing;

use crate::limits::{WEBHOOK_SECRET_BYTES, WEBHOOK_SECRET_BYTES_MIN};

/// Prefix of a secret Ed25519 key.
const SECRET_KEY: &str = "whsk_";
/// Prefix of a public Ed25519 key.
const PUBLIC_KEY: &str = "whpk_";
/// Prefix of a shared secret.
const SHARED: &str = "whsec_";
/// Length of an Ed25519 seed.
const SEED_BYTES: usize = 32;

/// Errors of parsing a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAKey {
    /// The prefix is missing, or the rest is not base64 of a key.
    #[error("give {0}… in base64")]
    Form(&'static str),
    /// The public half does not belong to the secret half.
    #[error("the public half is not that of the secret half")]
    Halves,
    /// The shared secret's length is out of bounds.
    #[error("a shared secret has {WEBHOOK_SECRET_BYTES_MIN} to {WEBHOOK_SECRET_BYTES} bytes")]
    Length,
}

/// The monitor's Ed25519 signing key for webhooks.
pub struct WebhookKey(SigningKey);

/// The public key, configured at receivers by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookPublicKey(VerifyingKey);

/// A secret shared with one receiver.
pub struct SharedSecret(hmac::Key);

/// The signed parts of a message.
#[derive(Clone, Copy, Debug)]
pub struct WebhookMessage<'a> {
    /// The message ID (`webhook-id`); the same for all attempts, so that receivers can detect duplicates.
    pub id: &'a str,
    /// Time of this attempt, in Unix seconds (`webhook-timestamp`).
    pub timestamp: u64,
    /// The bytes of the body.
    pub body: &'a [u8],
}

impl WebhookMessage<'_> {
    fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{}.{}.", self.id, self.timestamp).into_bytes();
        bytes.extend_from_slice(self.body);
        bytes
    }
}

impl WebhookKey {
    /// Generates a key.
    ///
    /// # Errors
    /// If the system's random number generator fails.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        getrandom::fill(seed.as_mut_slice())?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The secret key in the text format of the standard's libraries: `whsk_` and base64 of seed and public key.
    pub fn to_secret_text(&self) -> Zeroizing<String> {
        let whole = Zeroizing::new(self.0.to_keypair_bytes());
        Zeroizing::new(format!("{SECRET_KEY}{}", BASE64.encode(whole.as_slice())))
    }

    /// The public key.
    pub fn public(&self) -> WebhookPublicKey {
        WebhookPublicKey(self.0.verifying_key())
    }

    /// Signs a message with Ed25519; the result has the form `v1a,…`.
    pub fn sign(&self, message: WebhookMessage<'_>) -> String {
        format!("v1a,{}", BASE64.encode(&self.0.sign(&message.signed_bytes()).to_bytes()))
    }
}

/// Parses `whsk_` and base64 of a seed, optionally followed by the public key.
impl FromStr for WebhookKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let form = NotAKey::Form(SECRET_KEY);
        let bytes = Zeroizing::new(decode(SECRET_KEY, text).ok_or(form)?);
        let (seed, public) = bytes.split_first_chunk::<SEED_BYTES>().ok_or(form)?;
        let key = SigningKey::from_bytes(seed);
        match public.len() {
            0 => Ok(Self(key)),
            SEED_BYTES if key.verifying_key().as_bytes() == public => Ok(Self(key)),
            SEED_BYTES => Err(NotAKey::Halves),
            _ => Err(form),
        }
    }
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookKey({})", self.public())
    }
}

impl WebhookPublicKey {
    /// Returns `true` if the `webhook-signature` header has a valid Ed25519 signature of the message by this key.
    pub fn verifies(&self, message: WebhookMessage<'_>, header: &str) -> bool {
        let ours = header.split(' ').filter_map(|one| one.strip_prefix("v1a,"));
        let mut signatures = ours.filter_map(|text| BASE64.decode(text.as_bytes()).ok());
        let bytes = message.signed_bytes();
        signatures.any(|signature| {
            Signature::from_slice(&signature)
                .is_ok_and(|signature| self.0.verify_strict(&bytes, &signature).is_ok())
        })
    }
}

impl fmt::Display for WebhookPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_KEY}{}", BASE64.encode(self.0.as_bytes()))
    }
}

impl FromStr for WebhookPublicKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let bytes = decode(PUBLIC_KEY, text).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let key = bytes.and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        key.filter(|key| !key.is_weak()).map(Self).ok_or(NotAKey::Form(PUBLIC_KEY))
    }
}

impl SharedSecret {
    /// Signs a message with HMAC-SHA-256; the result has the form `v1,…`.
    pub fn sign(&self, message: WebhookMessage<'_>) -> String {
        format!("v1,{}", BASE64.encode(hmac::sign(&self.0, &message.signed_bytes()).as_ref()))
    }
}

impl FromStr for SharedSecret {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let secret = Zeroizing::new(decode(SHARED, text).ok_or(NotAKey::Form(SHARED))?);
        match secret.len() {
            WEBHOOK_SECRET_BYTES_MIN..=WEBHOOK_SECRET_BYTES => {
                Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &secret)))
            }
            _ => Err(NotAKey::Length),
        }
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret(…)")
    }
}

fn decode(prefix: &str, text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.trim().strip_prefix(prefix)?.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: WebhookMessage<'static> = WebhookMessage {
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp: 1_614_265_330,
        body: br#"{"test": 2432232314}"#,
    };

    #[test]
    fn the_example_of_the_standard_has_the_signature_that_the_standard_says() {
        let secret: SharedSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        assert_eq!(secret.sign(MESSAGE), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_was_signed_verifies_and_nothing_else_does() {
        let key = WebhookKey::generate().unwrap();
        let public: WebhookPublicKey = key.public().to_string().parse().unwrap();
        let header = format!("v1,AAAA {}", key.sign(MESSAGE));
        assert!(public.verifies(MESSAGE, &header));
        assert!(!public.verifies(WebhookMessage { timestamp: 1, ..MESSAGE }, &header));
        assert!(!public.verifies(WebhookMessage { id: "msg_2", ..MESSAGE }, &header));
        assert!(!public.verifies(WebhookMessage { body: b"{}", ..MESSAGE }, &header));
        assert!(!WebhookKey::generate().unwrap().public().verifies(MESSAGE, &header));
        assert!(!public.verifies(MESSAGE, "v1a,AAAA v2,x"));
    }

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let key = WebhookKey::generate().unwrap();
        let again: WebhookKey = key.to_secret_text().parse().unwrap();
        assert_eq!(again.public(), key.public());
        let seed = format!("whsk_{}", BASE64.encode(key.0.as_bytes()));
        assert_eq!(seed.parse::<WebhookKey>().unwrap().public(), key.public());
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let mixed = [WebhookKey::generate().unwrap(), WebhookKey::generate().unwrap()];
        let mixed = [*mixed[0].0.as_bytes(), *mixed[1].0.verifying_key().as_bytes()].concat();
        let mixed = format!("whsk_{}", BASE64.encode(&mixed));
        assert_eq!(mixed.parse::<WebhookKey>().unwrap_err(), NotAKey::Halves);
        for text in ["", "whsk_", "whsk_AAAA", "whpk_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert_eq!(text.parse::<WebhookKey>().unwrap_err(), NotAKey::Form("whsk_"), "{text}");
            assert!(text.parse::<WebhookPublicKey>().is_err(), "{text}");
        }
        assert_eq!("whsec_AAAA".parse::<SharedSecret>().unwrap_err(), NotAKey::Length);
        let weak = format!("whpk_{}", BASE64.encode(&[0; 32]));
        assert!(weak.parse::<WebhookPublicKey>().is_err());
    }
}
