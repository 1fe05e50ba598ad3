//! The witness's key, and the state directory that belongs to it.
//!
//! A key that has cosigned must never cosign again without knowing what: a state directory therefore names its key, in the
//! file `vkey`, and a key that comes with an empty directory is refused. At the first start the key is made here. It is
//! written aside, then `vkey`, then it takes its place: wherever that is cut short, the next start either finishes it or
//! begins anew with a key that never signed.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use durable::{Access, WriteError};
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use tlog::key::{BadKey, KeyName, VerifierKey};
use tlog::note::{LocalKey, NoteSigner};
use zeroize::Zeroizing;

use crate::files;

/// The largest file that is read as a key.
const KEY_BYTES: u64 = 16 << 10;

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A first start needs a name.
    #[error("a new witness needs a name")]
    NoName,
    /// The state belongs to a key that is not there.
    #[error("{path}: the key {key}, to which this state belongs, is not there")]
    Missing {
        /// Where it should be.
        path: PathBuf,
        /// Which it is.
        key: Box<VerifierKey>,
    },
    /// The state belongs to another key.
    #[error("the state belongs to {expected}, and {path} is {found}")]
    Other {
        /// The key's file.
        path: PathBuf,
        /// As the state directory says.
        expected: Box<VerifierKey>,
        /// As it is.
        found: Box<VerifierKey>,
    },
    /// A witness that has a name is started with another.
    #[error("this witness is named {is}, not {asked}")]
    OtherName {
        /// Its name.
        is: KeyName,
        /// The name asked for.
        asked: KeyName,
    },
    /// A key without its state: what it has cosigned is not known.
    #[error("{0} is a key, and the state directory does not know what it has cosigned")]
    WithoutState(PathBuf),
    /// Logs were witnessed here, and the file that names the key is gone.
    #[error("{0} is gone, and logs were witnessed here")]
    StateWithoutName(PathBuf),
    /// The key's file is open to others.
    #[error("{0} can be read by others (chmod 600)")]
    Open(PathBuf),
    /// Not a key.
    #[error("{path}: {flaw}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        flaw: BadKey,
    },
    /// The file system failed.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The system gives no random bytes.
    #[error("no random bytes for a key: {0}")]
    Random(String),
}

/// Where the key is, what it is called, and whether it is told to be unused.
#[derive(Clone, Debug)]
pub struct KeyPlace {
    /// The key, PKCS #8 PEM.
    pub key: PathBuf,
    /// The file that names it.
    pub vkey: PathBuf,
    /// Its name, for the first start.
    pub name: Option<KeyName>,
    /// The operator says that a key without state has never cosigned.
    pub unused: bool,
}

impl KeyPlace {
    /// The key to sign with. `used`: logs were witnessed in this directory.
    pub fn open(&self, used: bool) -> Result<LocalKey, KeyError> {
        match self.named()? {
            Some(named) => self.belonging_to(&named),
            None if used => Err(KeyError::StateWithoutName(self.vkey.clone())),
            None => self.first(),
        }
    }

    /// The key that the directory names.
    fn named(&self) -> Result<Option<VerifierKey>, KeyError> {
        let Some(text) = read(&self.vkey)? else { return Ok(None) };
        let flaw = |flaw| KeyError::Unusable { path: self.vkey.clone(), flaw };
        let line = text.strip_suffix('\n').ok_or_else(|| flaw(BadKey::Form))?;
        line.parse().map(Some).map_err(flaw)
    }

    fn belonging_to(&self, named: &VerifierKey) -> Result<LocalKey, KeyError> {
        if let Some(asked) = self.name.as_ref().filter(|asked| *asked != named.name()) {
            return Err(KeyError::OtherName { is: named.name().clone(), asked: asked.clone() });
        }
        let aside = aside(&self.key);
        if !self.key.exists() && aside.exists() {
            self.put_in_place(&aside)?;
        }
        let missing = || KeyError::Missing { path: self.key.clone(), key: Box::new(named.clone()) };
        let key = self.read_key(named.name())?.ok_or_else(missing)?;
        if key.key() != named {
            return Err(KeyError::Other {
                path: self.key.clone(),
                expected: Box::new(named.clone()),
                found: Box::new(key.key().clone()),
            });
        }
        Ok(key)
    }

    fn first(&self) -> Result<LocalKey, KeyError> {
        let name = self.name.clone().ok_or(KeyError::NoName)?;
        if let Some(key) = self.read_key(&name)? {
            if !self.unused {
                return Err(KeyError::WithoutState(self.key.clone()));
            }
            self.write_name(key.key())?;
            return Ok(key);
        }
        let (key, pem) = generate(name).map_err(|why| KeyError::Random(why.to_string()))?;
        let aside = aside(&self.key);
        durable::write_anew(&aside, pem.as_bytes(), Access::Secret).map_err(|error| failed(&aside, error))?;
        self.write_name(key.key())?;
        self.put_in_place(&aside)?;
        Ok(key)
    }

    fn write_name(&self, key: &VerifierKey) -> Result<(), KeyError> {
        Ok(durable::replace(&self.vkey, format!("{key}\n").as_bytes(), Access::Public)?)
    }

    fn put_in_place(&self, aside: &Path) -> Result<(), KeyError> {
        durable::rename(aside, &self.key).map_err(|error| failed(&self.key, error))
    }

    fn read_key(&self, name: &KeyName) -> Result<Option<LocalKey>, KeyError> {
        let Some(pem) = read(&self.key)? else { return Ok(None) };
        let metadata = fs::metadata(&self.key).map_err(|error| failed(&self.key, error))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(KeyError::Open(self.key.clone()));
        }
        let key = LocalKey::cosigner_from_pkcs8_pem(name.clone(), &pem);
        key.map(Some).map_err(|flaw| KeyError::Unusable { path: self.key.clone(), flaw })
    }
}

fn generate(name: KeyName) -> Result<(LocalKey, Zeroizing<String>), Box<dyn std::error::Error>> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|error| error.to_string())?;
    let secret = SigningKey::from_bytes(&seed);
    let pem = secret.to_pkcs8_pem(LineEnding::LF)?;
    Ok((LocalKey::cosigner(name, secret)?, pem))
}

/// The name under which a key waits until the directory names it: always the same, for the next start may have to find it.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    path.with_file_name(name)
}

fn read(path: &Path) -> Result<Option<Zeroizing<String>>, KeyError> {
    let bytes = files::read(path, KEY_BYTES).map_err(|error| failed(path, error))?;
    let text = bytes.map(|bytes| String::from_utf8(bytes).map(Zeroizing::new)).transpose();
    text.map_err(|_| KeyError::Unusable { path: path.to_owned(), flaw: BadKey::Form })
}

fn failed(path: &Path, error: io::Error) -> KeyError {
    KeyError::Io { path: path.to_owned(), error }
}
