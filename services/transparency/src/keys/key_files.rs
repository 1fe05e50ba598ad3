//! Private keys of the log on this machine: PKCS#8 PEM files that only their owner may read.
//!
//! A key is searched by its kid: in the configured file, and next to it in a file with the first characters of the kid
//! in its name (`receipt.mxA4KiOk.pem`). So a new key can be installed before it is in force, and the old one stays
//! available for heads that were committed under it.

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
    /// Path of the file.
    pub path: PathBuf,
    /// The defect, in words.
    pub why: String,
}

/// The alternative file for a key with this kid, next to the configured one.
pub fn file_of_kid(configured: &Path, kid: &[u8]) -> PathBuf {
    let short: String = BASE64URL_NOPAD.encode(kid).chars().take(KID_IN_FILE_NAME).collect();
    let stem = configured.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    configured.with_file_name(format!("{stem}.{short}.pem"))
}

/// The paths of the log's private keys, and the parameters to read them.
#[derive(Clone, Debug)]
pub struct PrivateKeys {
    /// Path of the configured receipt key.
    pub receipt: PathBuf,
    /// Path of the configured checkpoint key.
    pub checkpoint: PathBuf,
    algorithm: Algorithm,
    name: KeyName,
}

impl PrivateKeys {
    /// Takes the paths from a configuration.
    ///
    /// # Errors
    /// If the origin is not a valid name of a checkpoint key.
    pub fn of(config: &Config) -> Result<Self, KeyFileError> {
        let (receipt, checkpoint) = (config.keys.receipt.clone(), config.keys.checkpoint.clone());
        let name = config.origin.parse().map_err(|_| KeyFileError {
            path: checkpoint.clone(),
            why: format!("{} is not a key name", config.origin),
        })?;
        let algorithm = config.receipt_algorithm.algorithm();
        Ok(Self { receipt, checkpoint, algorithm, name })
    }

    /// The signature algorithm of receipts.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Reads the receipt key in this file.
    ///
    /// # Errors
    /// If the file is not a key for the configured algorithm, or its group or others may read it.
    pub fn read_receipt(&self, path: &Path) -> Result<SigningKey, KeyFileError> {
        let key = signing_key(path)?;
        let failed = |why: String| KeyFileError { path: path.to_owned(), why };
        key.with_algorithm(self.algorithm).map_err(|why| failed(why.to_string()))
    }

    /// Reads the checkpoint key in this file.
    ///
    /// # Errors
    /// If the file is not an Ed25519 key, or its group or others may read it.
    pub fn read_checkpoint(&self, path: &Path) -> Result<LocalKey, KeyFileError> {
        let failed = |why: String| KeyFileError { path: path.to_owned(), why };
        LocalKey::from_pkcs8_pem(self.name.clone(), &read_secret(path)?)
            .map_err(|why| failed(format!("no Ed25519 key: {why}")))
    }

    /// Checks that both configured files can be used.
    ///
    /// # Errors
    /// The [`KeyFileError`] of the first file that cannot be used.
    pub fn check(&self) -> Result<(), KeyFileError> {
        self.read_receipt(&self.receipt)?;
        self.read_checkpoint(&self.checkpoint).map(drop)
    }

    /// The receipt key with this kid; `None` if it is not on this machine.
    pub fn find_receipt(&self, kid: &[u8]) -> Option<SigningKey> {
        let read = |path: PathBuf| self.read_receipt(&path).ok();
        self.places(&self.receipt, kid).into_iter().filter_map(read).find(|key| receipt_kid(key) == kid)
    }

    /// The checkpoint key with this kid; `None` if it is not on this machine.
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

/// Reads a signing key of any algorithm.
///
/// # Errors
/// If the file is not a key, or its group or others may read it.
pub fn signing_key(path: &Path) -> Result<SigningKey, KeyFileError> {
    let pem = read_secret(path)?;
    SigningKey::from_pkcs8_pem(&pem)
        .map_err(|why| KeyFileError { path: path.to_owned(), why: why.to_string() })
}

/// Reads a file, unless its mode lets the group or others use it.
fn read_secret(path: &Path) -> Result<String, KeyFileError> {
    let failed = |why: String| KeyFileError { path: path.to_owned(), why };
    let file = fs::metadata(path).map_err(|why| failed(why.to_string()))?;
    if !durable::is_private(&file) {
        let mode = file.permissions().mode();
        return Err(failed(format!("others may read this key (mode {:04o}); chmod 600 it", mode & 0o7777)));
    }
    fs::read_to_string(path).map_err(|why| failed(why.to_string()))
}
