//! The gateway's own keys, and the public JWK set that it publishes.
//!
//! There are three keys, so that a signature of one purpose is never valid for another: the *evidence* key signs
//! statements for the log (COSE), the *verdict* key signs Verdicts (JWS), and a symmetric key, the same on every
//! replica, protects `requestState`. A key that the configuration does not name is created in the state folder at the
//! first start, readable by its owner only.
//!
//! A replaced verdict key stays in the published set (V-20). The set is the file `jwks.json` in the state folder: the
//! active key first, retired ones after it. An unreadable set stops the start, because Verdicts signed with a key lost
//! from it could never be verified again.
//!
//! Not here: registering the set in the log (`decision_writer`), and serving it ([`posture`](crate::posture)).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use durable::{FileAccess, WriteError};
use jose::jwk::PublicJwk;
use scitt::{Algorithm, PublicKey, Signer, SigningKey};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::jwk_set;
use crate::limits::{MAX_JWKS_BYTES, MAX_JWKS_KEYS, MAX_KEY_FILE_BYTES};

/// File name of the published JWK set in the state folder.
const JWKS_FILE: &str = "jwks.json";

/// All keys of a gateway.
#[derive(Clone)]
pub struct Keys {
    /// The evidence key: signs statements for the log (COSE).
    pub evidence: Arc<SigningKey>,
    /// The verdict key: signs Verdicts (JWS).
    pub verdict: Arc<SigningKey>,
    /// The symmetric state key: protects `requestState`, which clients hold for the gateway.
    pub state: Arc<Zeroizing<[u8; 32]>>,
    published: Arc<Vec<u8>>,
}

/// Reason why a key or the JWK set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GatewayKeyError {
    /// The key file is readable by its group or by others.
    #[error("{0} can be read by others (chmod 600)")]
    Open(PathBuf),
    /// A key file that the configuration names does not exist.
    #[error("{0} is not there")]
    Missing(PathBuf),
    /// The content is not a key, or not one of the required kind.
    #[error("{path}: {why}")]
    Unusable {
        /// The key file or the JWK set.
        path: PathBuf,
        /// The defect, in words.
        why: String,
    },
    /// Reading a file failed.
    #[error("{path}: {error}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Writing a file failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The system's random generator failed.
    #[error("no random bytes for a key")]
    Random,
}

impl GatewayKeyError {
    /// Returns the kind of the system's error, if there is one.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { error, .. }
            | Self::Write(WriteError::Unchanged { error, .. } | WriteError::InDoubt { error, .. }) => {
                Some(error.kind())
            }
            Self::Open(_) | Self::Missing(_) | Self::Unusable { .. } | Self::Random => None,
        }
    }
}

impl Keys {
    /// Reads the keys, creates those of the state folder that do not exist yet, and updates the published set.
    ///
    /// # Errors
    /// A [`GatewayKeyError`] if a key is unusable or readable by others, or a file cannot be read or written.
    pub fn open(config: &Config) -> Result<Self, GatewayKeyError> {
        durable::make_folder(&config.state, FileAccess::Secret)
            .map_err(|error| GatewayKeyError::Io { path: config.state.clone(), error })?;
        let [evidence, verdict, state] = KeyPath::all(config);
        let (evidence, verdict, state) = (evidence.signing()?, verdict.signing()?, state.symmetric()?);
        let published = publish(&config.state.join(JWKS_FILE), verdict.public_key())?;
        Ok(Self {
            evidence: Arc::new(evidence),
            verdict: Arc::new(verdict),
            state: Arc::new(state),
            published: Arc::new(published),
        })
    }

    /// The published JWK set of public verdict keys: canonical JSON, the active key first.
    #[must_use]
    pub fn jwks(&self) -> &[u8] {
        &self.published
    }

    /// The `kid` in the header of Verdict signatures: the RFC 7638 thumbprint of the verdict key.
    #[must_use]
    pub fn verdict_kid(&self) -> String {
        self.verdict.public_key().jwk_thumbprint()
    }
}

/// Reads the published JWK set without changing anything, for `gateway jwks`.
///
/// # Errors
/// [`GatewayKeyError::Missing`] if there is no set, or another [`GatewayKeyError`] if it cannot be read.
pub fn published(state: &Path) -> Result<Vec<u8>, GatewayKeyError> {
    let path = state.join(JWKS_FILE);
    let keys = read_set(&path)?.ok_or(GatewayKeyError::Missing(path))?;
    Ok(set_of(&keys))
}

/// The paths of the keys that the first start would create. Creates nothing itself.
///
/// # Errors
/// A [`GatewayKeyError`] if a key is unusable, or the configuration names one that is missing.
pub fn missing_paths(config: &Config) -> Result<Vec<PathBuf>, GatewayKeyError> {
    let [evidence, verdict, state] = KeyPath::all(config);
    let there = [
        evidence.existing_signing()?.is_some(),
        verdict.existing_signing()?.is_some(),
        state.existing_symmetric()?.is_some(),
    ];
    read_set(&config.state.join(JWKS_FILE))?;
    let places = [evidence, verdict, state].into_iter().zip(there);
    Ok(places.filter(|(_, there)| !there).map(|(place, _)| place.path).collect())
}

/// Reads the evidence key; `None` if the first start has yet to create it. Creates nothing itself.
///
/// # Errors
/// A [`GatewayKeyError`] if the key is unusable, or the configuration names one that is missing.
pub fn evidence(config: &Config) -> Result<Option<SigningKey>, GatewayKeyError> {
    let [evidence, ..] = KeyPath::all(config);
    evidence.existing_signing()
}

/// The path of a key file.
struct KeyPath {
    path: PathBuf,
    /// True if the key is in the state folder, where it is created if missing.
    ours: bool,
}

impl KeyPath {
    /// The places of the evidence, the verdict and the state key.
    fn all(config: &Config) -> [Self; 3] {
        let place = |given: &Option<PathBuf>, name: &str| match given {
            Some(path) => Self { path: path.clone(), ours: false },
            None => Self { path: config.state.join(name), ours: true },
        };
        [
            place(&config.keys.evidence, "evidence.key"),
            place(&config.keys.verdict, "verdict.key"),
            place(&config.keys.state, "state.key"),
        ]
    }

    fn signing(&self) -> Result<SigningKey, GatewayKeyError> {
        if let Some(key) = self.existing_signing()? {
            return Ok(key);
        }
        let key = SigningKey::generate(Algorithm::EdDsa).map_err(|_| GatewayKeyError::Random)?;
        let pem = key.to_pkcs8_pem().map_err(|error| self.unusable(error.to_string()))?;
        durable::replace(&self.path, pem.as_bytes(), FileAccess::Secret)?;
        Ok(key)
    }

    fn existing_signing(&self) -> Result<Option<SigningKey>, GatewayKeyError> {
        let Some(text) = self.read()? else { return Ok(None) };
        let key = SigningKey::from_pkcs8_pem(&text).map_err(|error| self.unusable(error.to_string()))?;
        match key.algorithm() {
            Algorithm::EdDsa => Ok(Some(key)),
            other => {
                Err(self.unusable(format!("an Ed25519 key is needed here, not one for {}", other.name())))
            }
        }
    }

    fn symmetric(&self) -> Result<Zeroizing<[u8; 32]>, GatewayKeyError> {
        if let Some(key) = self.existing_symmetric()? {
            return Ok(key);
        }
        let key = random()?;
        let line = Zeroizing::new(format!("{}\n", BASE64URL_NOPAD.encode(&*key)));
        durable::replace(&self.path, line.as_bytes(), FileAccess::Secret)?;
        Ok(key)
    }

    fn existing_symmetric(&self) -> Result<Option<Zeroizing<[u8; 32]>>, GatewayKeyError> {
        let Some(text) = self.read()? else { return Ok(None) };
        let bytes = BASE64URL_NOPAD.decode(text.trim_end().as_bytes()).ok().map(Zeroizing::new);
        let key = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok());
        let unusable = || self.unusable("32 bytes in base64url without padding are needed".into());
        key.map(|key| Some(Zeroizing::new(key))).ok_or_else(unusable)
    }

    /// The text of the key file; `None` if a key of the state folder does not exist yet.
    fn read(&self) -> Result<Option<Zeroizing<String>>, GatewayKeyError> {
        let io = |error| GatewayKeyError::Io { path: self.path.clone(), error };
        let Some(bytes) = durable::read(&self.path, MAX_KEY_FILE_BYTES).map_err(io)? else {
            return if self.ours { Ok(None) } else { Err(GatewayKeyError::Missing(self.path.clone())) };
        };
        if !durable::is_private(&std::fs::metadata(&self.path).map_err(io)?) {
            return Err(GatewayKeyError::Open(self.path.clone()));
        }
        let text = String::from_utf8(bytes).map_err(|_| self.unusable("not text".into()))?;
        Ok(Some(Zeroizing::new(text)))
    }

    fn unusable(&self, why: String) -> GatewayKeyError {
        GatewayKeyError::Unusable { path: self.path.clone(), why }
    }
}

fn random() -> Result<Zeroizing<[u8; 32]>, GatewayKeyError> {
    let mut key = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *key).map_err(|_| GatewayKeyError::Random)?;
    Ok(key)
}

/// Writes the published set with the active key first, and keeps all keys that it already had.
fn publish(path: &Path, active: &PublicKey) -> Result<Vec<u8>, GatewayKeyError> {
    let active = active.to_jwk();
    let before = read_set(path)?.unwrap_or_default();
    let mut keys = vec![active.clone()];
    keys.extend(before.iter().filter(|key| key.thumbprint() != active.thumbprint()).cloned());
    if keys.len() > MAX_JWKS_KEYS {
        let why = format!("no more than {MAX_JWKS_KEYS} verdict keys");
        return Err(GatewayKeyError::Unusable { path: path.to_owned(), why });
    }
    let set = set_of(&keys);
    if set_of(&before) != set {
        durable::replace(path, &set, FileAccess::Public)?;
    }
    Ok(set)
}

fn read_set(path: &Path) -> Result<Option<Vec<PublicJwk>>, GatewayKeyError> {
    let most = u64::try_from(MAX_JWKS_BYTES).unwrap_or(u64::MAX);
    let bytes =
        durable::read(path, most).map_err(|error| GatewayKeyError::Io { path: path.to_owned(), error })?;
    let keys = bytes.map(|bytes| jwk_set::parse(&bytes)).transpose();
    keys.map_err(|why| GatewayKeyError::Unusable { path: path.to_owned(), why })
}

/// The JWK set as canonical JSON; the `kid` of each key is its RFC 7638 thumbprint.
fn set_of(keys: &[PublicJwk]) -> Vec<u8> {
    let named = |key: &PublicJwk| {
        let mut value = key.to_value();
        let members = [
            ("kid", BASE64URL_NOPAD.encode(&key.thumbprint())),
            ("alg", "EdDSA".to_owned()),
            ("use", "sig".to_owned()),
        ];
        for (name, text) in members {
            value[name] = Value::String(text);
        }
        value
    };
    let keys: Vec<Value> = keys.iter().map(named).collect();
    jose::jcs::canonical(&json!({ "keys": keys }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn active(path: &Path) -> Vec<String> {
        read_set(path).unwrap().unwrap().iter().map(|key| BASE64URL_NOPAD.encode(&key.thumbprint())).collect()
    }

    #[test]
    fn a_replaced_verdict_key_stays_published_behind_the_active_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(JWKS_FILE);
        let [first, second] = [0, 1].map(|_| SigningKey::generate(Algorithm::EdDsa).unwrap());
        let once = publish(&path, first.public_key()).unwrap();
        assert_eq!(publish(&path, first.public_key()).unwrap(), once);
        publish(&path, second.public_key()).unwrap();
        let names = [second.public_key().jwk_thumbprint(), first.public_key().jwk_thumbprint()];
        assert_eq!(active(&path), names);
        registration::jwk_set::JwkSetRecord::read(&published(folder.path()).unwrap()).unwrap();
    }

    #[test]
    fn a_damaged_set_stops_the_start_and_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(JWKS_FILE);
        std::fs::write(&path, b"{\"keys\":[]}").unwrap();
        let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
        assert!(matches!(publish(&path, key.public_key()), Err(GatewayKeyError::Unusable { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"keys\":[]}");
    }

    #[test]
    fn a_key_that_others_may_read_or_that_signs_otherwise_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| KeyPath { path: folder.path().join(name), ours: true };
        let made = place("a").signing().unwrap();
        assert_eq!(place("a").signing().unwrap().public_key(), made.public_key());
        let secret = place("s").symmetric().unwrap();
        assert_eq!(*place("s").symmetric().unwrap(), *secret);
        assert_eq!(std::fs::metadata(folder.path().join("s")).unwrap().permissions().mode() & 0o777, 0o600);

        std::fs::set_permissions(folder.path().join("a"), PermissionsExt::from_mode(0o640)).unwrap();
        assert!(matches!(place("a").signing(), Err(GatewayKeyError::Open(_))));
        let other = SigningKey::generate(Algorithm::Es256).unwrap().to_pkcs8_pem().unwrap();
        durable::replace(&folder.path().join("b"), other.as_bytes(), FileAccess::Secret).unwrap();
        assert!(matches!(place("b").signing(), Err(GatewayKeyError::Unusable { .. })));
        let named = KeyPath { path: folder.path().join("none"), ours: false };
        assert!(matches!(named.signing(), Err(GatewayKeyError::Missing(_))));
    }
}
