//! The witness's signing key, and its binding to a state directory.
//!
//! A key that has cosigned must never be used without the record of its cosignatures. Therefore a state directory names
//! its key in the file `vkey`, and an existing key with an empty directory is refused. At the first start the key is
//! generated: it is written under a temporary name, then `vkey` is written, then the key is renamed. After an
//! interruption the next start either completes this or generates a new key that never signed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use durable::{FileAccess, WriteError};
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{EncodePrivateKey, KeypairBytes};
use tlog::key::{BadKey, KeyName, VerifierKey};
use tlog::note::{LocalKey, NoteSigner};
use zeroize::Zeroizing;

use crate::files;

/// Maximum size of a key file.
const KEY_BYTES: u64 = 16 << 10;

/// Errors of opening the signing key.
#[derive(Debug, thiserror::Error)]
pub enum WitnessKeyError {
    /// A new witness needs a key name: `Config::name`.
    #[error("a new witness needs a name")]
    NoName,
    /// The key to which the state belongs does not exist.
    #[error("{path}: the key {key}, to which this state belongs, is not there")]
    Missing {
        /// Expected path of the key file.
        path: PathBuf,
        /// The key named in `vkey`.
        key: Box<VerifierKey>,
    },
    /// The state belongs to another key.
    #[error("the state belongs to {expected}, and {path} is {found}")]
    Other {
        /// Path of the key file.
        path: PathBuf,
        /// The key named in `vkey`.
        expected: Box<VerifierKey>,
        /// The key in the key file.
        found: Box<VerifierKey>,
    },
    /// The configured name differs from the existing witness's name.
    #[error("this witness is named {is}, not {asked}")]
    OtherName {
        /// The existing name.
        is: KeyName,
        /// The configured name.
        asked: KeyName,
    },
    /// A key exists without its state, so its earlier cosignatures are unknown; see `Config::unused_key`.
    #[error("the state directory does not have the cosignatures of the key {0}")]
    WithoutState(PathBuf),
    /// Logs were witnessed in this directory, but `vkey` is missing.
    #[error("{0} is gone, and logs were witnessed here")]
    StateWithoutName(PathBuf),
    /// The key file is accessible to the group or to others.
    #[error("{0} can be read by others (chmod 600)")]
    Open(PathBuf),
    /// The file does not contain a valid key.
    #[error("{path}: {flaw}")]
    Unusable {
        /// Path of the file.
        path: PathBuf,
        /// Reason for the rejection.
        flaw: BadKey,
    },
    /// An I/O error.
    #[error("{path}: {error}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The underlying error.
        error: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The system's random number generator failed.
    #[error("no random bytes for a key: {0}")]
    Random(String),
}

/// Paths and name of the key, and whether an existing key without state may be used.
#[derive(Clone, Debug)]
pub struct KeyPlace {
    /// Path of the key file (PKCS #8 PEM).
    pub key: PathBuf,
    /// Path of the file `vkey`.
    pub vkey: PathBuf,
    /// The configured key name; required at the first start.
    pub name: Option<KeyName>,
    /// The operator states that a key without state has never cosigned.
    pub unused: bool,
}

impl KeyPlace {
    /// Opens the signing key, or generates it at the first start. `used`: logs were witnessed in this directory.
    pub fn open(&self, used: bool) -> Result<LocalKey, WitnessKeyError> {
        match self.named()? {
            Some(named) => self.belonging_to(&named),
            None if used => Err(WitnessKeyError::StateWithoutName(self.vkey.clone())),
            None => self.first(),
        }
    }

    /// Reads the key named in `vkey`; `None` if the file does not exist.
    fn named(&self) -> Result<Option<VerifierKey>, WitnessKeyError> {
        let Some(text) = read(&self.vkey)? else { return Ok(None) };
        let flaw = |flaw| WitnessKeyError::Unusable { path: self.vkey.clone(), flaw };
        let line = text.strip_suffix('\n').ok_or_else(|| flaw(BadKey::Form))?;
        line.parse().map(Some).map_err(flaw)
    }

    fn belonging_to(&self, named: &VerifierKey) -> Result<LocalKey, WitnessKeyError> {
        if let Some(asked) = self.name.as_ref().filter(|asked| *asked != named.name()) {
            return Err(WitnessKeyError::OtherName { is: named.name().clone(), asked: asked.clone() });
        }
        let aside = aside(&self.key);
        if !self.key.exists() && aside.exists() {
            self.put_in_place(&aside)?;
        }
        let missing = || WitnessKeyError::Missing { path: self.key.clone(), key: Box::new(named.clone()) };
        let key = self.read_key(named.name())?.ok_or_else(missing)?;
        if key.key() != named {
            return Err(WitnessKeyError::Other {
                path: self.key.clone(),
                expected: Box::new(named.clone()),
                found: Box::new(key.key().clone()),
            });
        }
        Ok(key)
    }

    fn first(&self) -> Result<LocalKey, WitnessKeyError> {
        let name = self.name.clone().ok_or(WitnessKeyError::NoName)?;
        if let Some(key) = self.read_key(&name)? {
            if !self.unused {
                return Err(WitnessKeyError::WithoutState(self.key.clone()));
            }
            self.write_name(key.key())?;
            return Ok(key);
        }
        let (key, pem) = generate(name).map_err(|why| WitnessKeyError::Random(why.to_string()))?;
        let aside = aside(&self.key);
        durable::write_anew(&aside, pem.as_bytes(), FileAccess::Secret)
            .map_err(|error| failed(&aside, error))?;
        self.write_name(key.key())?;
        self.put_in_place(&aside)?;
        Ok(key)
    }

    fn write_name(&self, key: &VerifierKey) -> Result<(), WitnessKeyError> {
        Ok(durable::replace(&self.vkey, format!("{key}\n").as_bytes(), FileAccess::Public)?)
    }

    fn put_in_place(&self, aside: &Path) -> Result<(), WitnessKeyError> {
        durable::rename(aside, &self.key).map_err(|error| failed(&self.key, error))
    }

    fn read_key(&self, name: &KeyName) -> Result<Option<LocalKey>, WitnessKeyError> {
        let Some(pem) = read(&self.key)? else { return Ok(None) };
        let metadata = fs::metadata(&self.key).map_err(|error| failed(&self.key, error))?;
        if !durable::is_private(&metadata) {
            return Err(WitnessKeyError::Open(self.key.clone()));
        }
        let key = LocalKey::cosigner_from_pkcs8_pem(name.clone(), &pem);
        key.map(Some).map_err(|flaw| WitnessKeyError::Unusable { path: self.key.clone(), flaw })
    }
}

fn generate(name: KeyName) -> Result<(LocalKey, Zeroizing<String>), Box<dyn std::error::Error>> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|error| error.to_string())?;
    let secret = SigningKey::from_bytes(&seed);
    // Without the public key, which would make it a version that OpenSSL 3.0 and Python's `cryptography` do not read.
    let block = KeypairBytes { secret_key: *seed, public_key: None };
    let pem = block.to_pkcs8_pem(LineEnding::LF)?;
    Ok((LocalKey::cosigner(name, secret)?, pem))
}

/// The temporary name of a new key. It is fixed, because the next start may have to find the file.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    path.with_file_name(name)
}

fn read(path: &Path) -> Result<Option<Zeroizing<String>>, WitnessKeyError> {
    let bytes = files::read(path, KEY_BYTES).map_err(|error| failed(path, error))?;
    let text = bytes.map(|bytes| String::from_utf8(bytes).map(Zeroizing::new)).transpose();
    text.map_err(|_| WitnessKeyError::Unusable { path: path.to_owned(), flaw: BadKey::Form })
}

fn failed(path: &Path, error: io::Error) -> WitnessKeyError {
    WitnessKeyError::Io { path: path.to_owned(), error }
}
