//! Signs committed heads: once as receipts need it (COSE), once as monitors and witnesses do (C2SP note).
//!
//! Two keys for two purposes (RFC 9943, 9.4). Keys are PKCS#8 PEM files that only their owner may
//! read. A log remembers its keys: another one at start is refused, for receipts signed under it
//! would be a stranger's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scitt::receipt::{ReceiptHeader, SignedRoot};
use scitt::{Algorithm, CoseKey, Signer, SigningKey};
use sequencer::{HeadSigner, SignFailed};
use store::{CommittedHead, HeadSignature, LogKey, LogStore, SignatureKind, StoreError};
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::note::{LocalKey, NoteSigner};

use crate::config::{Config, ReceiptAlgorithm};

/// A key file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct KeyFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// The key at hand is not the one this log signs with.
#[derive(Debug, thiserror::Error)]
#[error("the {what} key in {path} has kid {given}; this log signs with {recorded}")]
pub struct OtherKey {
    /// "receipt" or "checkpoint".
    pub what: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The key in it.
    pub given: String,
    /// The key on record.
    pub recorded: String,
}

/// Both keys of a log.
pub struct LogSigner {
    receipt: Arc<dyn Signer>,
    kid: Vec<u8>,
    checkpoint: Box<dyn NoteSigner>,
    iss: String,
    origin: Origin,
    paths: (PathBuf, PathBuf),
}

impl LogSigner {
    /// Reads both key files.
    pub fn load(config: &Config) -> Result<Self, KeyFileError> {
        let receipt = receipt_key(&config.keys.receipt, config.receipt_algorithm)?;
        let path = &config.keys.checkpoint;
        let unusable = |why: String| KeyFileError { path: path.clone(), why };
        let pem = read_secret(path)?;
        let name =
            config.origin.parse().map_err(|_| unusable(format!("{} is no key name", config.origin)))?;
        let checkpoint =
            LocalKey::from_pkcs8_pem(name, &pem).map_err(|why| unusable(format!("no Ed25519 key: {why}")))?;
        let origin =
            config.origin.parse().map_err(|_| unusable(format!("{} is no origin", config.origin)))?;
        Ok(Self {
            kid: receipt.public_key().thumbprint().to_vec(),
            receipt: Arc::new(receipt),
            checkpoint: Box::new(checkpoint),
            iss: config.iss.clone(),
            origin,
            paths: (config.keys.receipt.clone(), path.clone()),
        })
    }

    /// The name of the receipt key: base64url of its RFC 9679 thumbprint.
    pub fn kid(&self) -> String {
        data_encoding::BASE64URL_NOPAD.encode(&self.kid)
    }

    /// How receipts are signed.
    pub fn algorithm(&self) -> Algorithm {
        self.receipt.algorithm()
    }

    /// The checkpoint key as monitors and witnesses are given it.
    pub fn checkpoint_key(&self) -> String {
        self.checkpoint.key().to_string()
    }

    /// Checks both keys against the log's records and adds what is not recorded yet.
    pub async fn introduce(&self, store: &dyn LogStore) -> Result<(), IntroduceError> {
        let known = store.keys().await?;
        let receipt = LogKey {
            kid: self.kid.clone(),
            public: self.public_key().encode().into(),
            from_size: merkle::TreeSize::new(0),
            retired_at: None,
        };
        let checkpoint = LogKey {
            kid: self.checkpoint_kid(),
            public: self.checkpoint_key().into_bytes().into(),
            from_size: merkle::TreeSize::new(0),
            retired_at: None,
        };
        self.check(&known, &receipt, "receipt", &self.paths.0)?;
        self.check(&known, &checkpoint, "checkpoint", &self.paths.1)?;
        store.keep_key(&receipt).await?;
        store.keep_key(&checkpoint).await?;
        Ok(())
    }

    fn check(
        &self,
        known: &[LogKey],
        ours: &LogKey,
        what: &'static str,
        path: &Path,
    ) -> Result<(), OtherKey> {
        let same_kind =
            |key: &&LogKey| is_receipt_key(key) == is_receipt_key(ours) && key.retired_at.is_none();
        let recorded: Vec<&LogKey> = known.iter().filter(same_kind).collect();
        if recorded.is_empty() || recorded.iter().any(|key| key.kid == ours.kid) {
            return Ok(());
        }
        let hex = |kid: &[u8]| data_encoding::BASE64URL_NOPAD.encode(kid);
        let recorded = recorded.iter().map(|key| hex(&key.kid)).collect::<Vec<_>>().join(", ");
        Err(OtherKey { what, path: path.to_owned(), given: hex(&ours.kid), recorded })
    }

    fn public_key(&self) -> CoseKey {
        CoseKey {
            key: self.receipt.public_key().clone(),
            kid: Some(self.kid.clone()),
            algorithm: Some(self.receipt.algorithm()),
        }
    }

    fn checkpoint_kid(&self) -> Vec<u8> {
        self.checkpoint.key().id().get().to_be_bytes().to_vec()
    }

    fn receipt_signature(&self, head: &CommittedHead) -> Result<HeadSignature, SignFailed> {
        let header = ReceiptHeader {
            alg: self.receipt.algorithm(),
            kid: self.kid.clone(),
            iss: self.iss.clone(),
            sub: self.origin.to_string(),
            iat: head.at,
            tree_size: head.size,
        };
        let signed =
            header.sign_root(&*self.receipt, &head.root).map_err(|why| SignFailed(why.to_string()))?;
        let bytes = signed.to_bytes().into();
        Ok(HeadSignature { size: head.size, kind: SignatureKind::Receipt, kid: self.kid.clone(), bytes })
    }

    fn checkpoint_signature(&self, head: &CommittedHead) -> Result<HeadSignature, SignFailed> {
        let failed = |why: &dyn std::fmt::Display| SignFailed(why.to_string());
        let checkpoint =
            Checkpoint::new(self.origin.clone(), head.size, head.root).map_err(|why| failed(&why))?;
        let note = checkpoint.sign(&*self.checkpoint).map_err(|why| failed(&why))?;
        let bytes = note.to_string().into_bytes().into();
        Ok(HeadSignature {
            size: head.size,
            kind: SignatureKind::Checkpoint,
            kid: self.checkpoint_kid(),
            bytes,
        })
    }
}

impl HeadSigner for LogSigner {
    fn makes(&self) -> Vec<(SignatureKind, Vec<u8>)> {
        vec![(SignatureKind::Receipt, self.kid.clone()), (SignatureKind::Checkpoint, self.checkpoint_kid())]
    }

    fn sign(&self, head: &CommittedHead) -> Result<Vec<HeadSignature>, SignFailed> {
        Ok(vec![self.receipt_signature(head)?, self.checkpoint_signature(head)?])
    }

    fn knows(&self, head: &CommittedHead, kept: &HeadSignature) -> bool {
        match kept.kind {
            SignatureKind::Receipt if kept.kid == self.kid => SignedRoot::parse(kept.bytes.clone())
                .is_ok_and(|signed| {
                    signed.tree_size() == head.size
                        && signed.verify(&head.root, self.receipt.public_key()).is_ok()
                }),
            // Ed25519 signs the same the same way.
            SignatureKind::Checkpoint if kept.kid == self.checkpoint_kid() => {
                self.checkpoint_signature(head).is_ok_and(|signed| signed.bytes == kept.bytes)
            }
            _ => true,
        }
    }
}

/// Why the log's keys could not be put on record.
#[derive(Debug, thiserror::Error)]
pub enum IntroduceError {
    /// Another key is on record.
    #[error(transparent)]
    Other(#[from] OtherKey),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether a recorded key verifies receipts. The other kind is a note key ("name+id+key").
pub fn is_receipt_key(key: &LogKey) -> bool {
    CoseKey::parse(&key.public).is_ok()
}

/// Reads a signing key for receipts.
fn receipt_key(path: &Path, algorithm: ReceiptAlgorithm) -> Result<SigningKey, KeyFileError> {
    let algorithm = match algorithm {
        ReceiptAlgorithm::Es256 => Algorithm::Es256,
        ReceiptAlgorithm::Es384 => Algorithm::Es384,
        ReceiptAlgorithm::EdDsa => Algorithm::EdDsa,
    };
    let key = signing_key(path)?;
    key.with_algorithm(algorithm).map_err(|why| KeyFileError { path: path.to_owned(), why: why.to_string() })
}

/// Reads a signing key of any kind.
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
