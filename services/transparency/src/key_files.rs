//! Private keys of the log on this machine: PKCS#8 PEM files that only their owner may read.
//!
//! A key is looked for by its kid: in the configured file, and beside it in a file with the first characters
//! of the kid in its name (`receipt.mxA4KiOk.pem`). So a new key can be put in place before it is in force,
//! and the old one stays at hand for heads that were committed under it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use data_encoding::BASE64URL_NOPAD;
use scitt::{Algorithm, Signer, SigningKey};
use tlog::key::KeyName;
use tlog::note::{LocalKey, NoteSigner};

use crate::config::Config;
use crate::limits::KID_IN_FILE_NAME;

/// A key file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct KeyFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// The file beside the configured one in which a key with this kid is looked for.
pub fn file_of_kid(configured: &Path, kid: &[u8]) -> PathBuf {
    let short: String = BASE64URL_NOPAD.encode(kid).chars().take(KID_IN_FILE_NAME).collect();
    let stem = configured.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    configured.with_file_name(format!("{stem}.{short}.pem"))
}

/// Where the log's private keys are, and how they are read.
#[derive(Clone, Debug)]
pub struct PrivateKeys {
    /// The configured receipt key.
    pub receipt: PathBuf,
    /// The configured checkpoint key.
    pub checkpoint: PathBuf,
    algorithm: Algorithm,
    name: KeyName,
}

impl PrivateKeys {
    /// Those of a configuration.
    ///
    /// # Errors
    /// If the origin cannot name a checkpoint key.
    pub fn of(config: &Config) -> Result<Self, KeyFileError> {
        let (receipt, checkpoint) = (config.keys.receipt.clone(), config.keys.checkpoint.clone());
        let name = config.origin.parse().map_err(|_| KeyFileError {
            path: checkpoint.clone(),
            why: format!("{} is no key name", config.origin),
        })?;
        let algorithm = config.receipt_algorithm.algorithm();
        Ok(Self { receipt, checkpoint, algorithm, name })
    }

    /// The algorithm of receipts.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The receipt key in this file.
    ///
    /// # Errors
    /// If it is no key for the configured algorithm, or others may read it.
    pub fn read_receipt(&self, path: &Path) -> Result<SigningKey, KeyFileError> {
        let key = signing_key(path)?;
        let failed = |why: String| KeyFileError { path: path.to_owned(), why };
        key.with_algorithm(self.algorithm).map_err(|why| failed(why.to_string()))
    }

    /// The checkpoint key in this file.
    ///
    /// # Errors
    /// If it is no Ed25519 key, or others may read it.
    pub fn read_checkpoint(&self, path: &Path) -> Result<LocalKey, KeyFileError> {
        let failed = |why: String| KeyFileError { path: path.to_owned(), why };
        LocalKey::from_pkcs8_pem(self.name.clone(), &read_secret(path)?)
            .map_err(|why| failed(format!("no Ed25519 key: {why}")))
    }

    /// Checks that both configured files can be used.
    ///
    /// # Errors
    /// If not.
    pub fn check(&self) -> Result<(), KeyFileError> {
        self.read_receipt(&self.receipt)?;
        self.read_checkpoint(&self.checkpoint).map(drop)
    }

    /// The receipt key with this kid, if it is on this machine.
    pub fn find_receipt(&self, kid: &[u8]) -> Option<SigningKey> {
        let read = |path: PathBuf| self.read_receipt(&path).ok();
        self.places(&self.receipt, kid).into_iter().filter_map(read).find(|key| receipt_kid(key) == kid)
    }

    /// The checkpoint key with this kid, if it is on this machine.
    pub fn find_checkpoint(&self, kid: &[u8]) -> Option<LocalKey> {
        let read = |path: PathBuf| self.read_checkpoint(&path).ok();
        self.places(&self.checkpoint, kid).into_iter().filter_map(read).find(|key| checkpoint_kid(key) == kid)
    }

    fn places(&self, configured: &Path, kid: &[u8]) -> [PathBuf; 2] {
        [configured.to_owned(), file_of_kid(configured, kid)]
    }
}

/// Kid of a receipt key: its RFC 9679 thumbprint.
pub fn receipt_kid(key: &SigningKey) -> Vec<u8> {
    key.public_key().thumbprint().to_vec()
}

/// Kid of a checkpoint key: its C2SP key ID, big-endian.
pub fn checkpoint_kid(key: &LocalKey) -> Vec<u8> {
    key.key().id().get().to_be_bytes().to_vec()
}

/// Reads a signing key of any kind.
///
/// # Errors
/// If it is no key, or others may read it.
pub fn signing_key(path: &Path) -> Result<SigningKey, KeyFileError> {
    let pem = read_secret(path)?;
    SigningKey::from_pkcs8_pem(&pem)
        .map_err(|why| KeyFileError { path: path.to_owned(), why: why.to_string() })
}

/// Reads a file that must not be anybody else's to read.
fn read_secret(path: &Path) -> Result<String, KeyFileError> {
    let failed = |why: String| KeyFileError { path: path.to_owned(), why };
    let mode = fs::metadata(path).map_err(|why| failed(why.to_string()))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(failed(format!("others may read this key (mode {:04o}); chmod 600 it", mode & 0o7777)));
    }
    fs::read_to_string(path).map_err(|why| failed(why.to_string()))
}
