//! Signatures over committed heads: one for receipts (COSE), and one for monitors and witnesses (C2SP note).
//!
//! The two purposes have two keys (RFC 9943, 9.4). The key table in the database determines the key that signs a head
//! of a given size; a process signs with these keys only. The leader puts an announced key in force between two
//! batches, after every process has had time to publish it.
//!
//! Not here: the files of private keys (`key_files`), and publishing keys (`published_keys`).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use merkle::TreeSize;
use scitt::receipt::{ReceiptHeader, SignedRoot};
use scitt::{CoseKey, Signer, SigningKey};
use sequencer::{HeadSigner, SignFailed};
use store::{CommittedHead, HeadSignature, KeyAnnouncement, KeyRotation, LogKey, SignatureKind, StoreError};
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NoteSigner};
use tokio::sync::{Mutex, watch};

use crate::config::Config;
use crate::keys::key_files::{KeyFileError, PrivateKeys, checkpoint_kid, file_of_kid, receipt_kid};
use crate::keys::recorded::check_key;
use crate::limits::KEY_LISTED;
use crate::time::now;

/// The private key in force is not on this machine.
#[derive(Debug, thiserror::Error)]
#[error(
    "the {what} key in {} has kid {given}; this log signs with {recorded} from size {from} on. Copy the file of \
     that key from the machine on which it was made to {} (mode 0600), or in place of the old file",
    path.display(), place.display()
)]
pub struct OtherKey {
    /// `"receipt"` or `"checkpoint"`.
    pub what: &'static str,
    /// Path of the configured file.
    pub path: PathBuf,
    /// The kid of the key in that file.
    pub given: String,
    /// `true` if the key in that file was one of this log's.
    pub retired: bool,
    /// The kid of the key in force.
    pub recorded: String,
    /// The first size whose head the key in force signs.
    pub from: TreeSize,
    /// The alternative path for its file, next to the configured one.
    pub place: PathBuf,
}

/// Reason why the log's keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IntroduceError {
    /// Another key is in force.
    #[error(transparent)]
    Other(#[from] Box<OtherKey>),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A key file cannot be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The key table could not be read, or a private key in force is missing.
    #[error("{0}")]
    Keys(String),
}

/// The signer of the log's heads: the key table, with the private keys on this machine.
pub struct LogSigner {
    store: Arc<dyn KeyRotation>,
    files: PrivateKeys,
    iss: String,
    origin: Origin,
    ring: ArcSwap<KeyRing>,
    /// The time at which this process first saw each announced key. Locked while the ring is replaced, so that an older
    /// table never replaces a newer one.
    noticed: Mutex<HashMap<Vec<u8>, Instant>>,
    waits: watch::Sender<bool>,
}

/// A key of the table, with its private key if it is on this machine.
struct ListedKey<P, S> {
    record: LogKey,
    public: P,
    private: Option<Arc<S>>,
}

/// The parsed key table.
#[derive(Default)]
struct KeyRing {
    receipts: Vec<ListedKey<CoseKey, SigningKey>>,
    checkpoints: Vec<ListedKey<VerifierKey, LocalKey>>,
    keys: Vec<LogKey>,
    announced: Vec<KeyAnnouncement>,
    /// Kids of the announced keys whose private key is on this machine.
    at_hand: Vec<Vec<u8>>,
    missing: Option<String>,
}

impl LogSigner {
    /// Reads the configured key files, records their keys in a log that has none, and reads the key table.
    ///
    /// # Errors
    /// If a file cannot be used, or a private key in force is not on this machine.
    pub async fn open(config: &Config, store: Arc<dyn KeyRotation>) -> Result<Self, IntroduceError> {
        let files = PrivateKeys::of(config)?;
        let receipt = files.read_receipt(&files.receipt)?;
        let checkpoint = files.read_checkpoint(&files.checkpoint)?;
        let origin = config.origin.parse().map_err(|_| KeyFileError {
            path: files.checkpoint.clone(),
            why: format!("{} is not an origin", config.origin),
        })?;
        let signer = Self {
            store,
            files,
            iss: config.iss.clone(),
            origin,
            ring: ArcSwap::default(),
            noticed: Mutex::default(),
            waits: watch::Sender::new(false),
        };
        signer.introduce(&receipt, &checkpoint).await?;
        signer.refresh().await.map_err(|SignFailed(why)| IntroduceError::Keys(why))?;
        Ok(signer)
    }

    /// Records the first keys of a log, or checks that the private keys in force are on this machine.
    async fn introduce(&self, receipt: &SigningKey, checkpoint: &LocalKey) -> Result<(), IntroduceError> {
        let known = self.undamaged(self.store.keys().await?);
        let first = TreeSize::EMPTY;
        let ours = [
            ("receipt", LogKey::new(receipt_kid(receipt), cose_key(receipt).encode().into(), first)),
            (
                "checkpoint",
                LogKey::new(
                    checkpoint_kid(checkpoint),
                    checkpoint.key().to_string().into_bytes().into(),
                    first,
                ),
            ),
        ];
        for (what, key) in ours {
            match known.iter().find(|known| is_receipt_key(known) == is_receipt_key(&key) && in_force(known))
            {
                None => self.store.keep_key(&key).await?,
                Some(in_force) => {
                    let retired = known.iter().any(|known| known.kid == key.kid);
                    self.check_at_hand(what, (&key.kid, retired), in_force)?;
                }
            }
        }
        Ok(())
    }

    fn check_at_hand(
        &self,
        what: &'static str,
        (given, retired): (&[u8], bool),
        known: &LogKey,
    ) -> Result<(), Box<OtherKey>> {
        let (path, found) = match is_receipt_key(known) {
            true => (&self.files.receipt, self.files.find_receipt(&known.kid).is_some()),
            false => (&self.files.checkpoint, self.files.find_checkpoint(&known.kid).is_some()),
        };
        if found {
            return Ok(());
        }
        Err(Box::new(OtherKey {
            what,
            path: path.clone(),
            given: BASE64URL_NOPAD.encode(given),
            retired,
            recorded: BASE64URL_NOPAD.encode(&known.kid),
            from: known.from_size,
            place: file_of_kid(path, &known.kid),
        }))
    }

    /// Kid of the receipt key in force, base64url.
    pub fn kid(&self) -> String {
        let ring = self.ring.load();
        ring.receipts
            .iter()
            .find(|key| in_force(&key.record))
            .map_or_else(String::new, |key| BASE64URL_NOPAD.encode(&key.record.kid))
    }

    /// The signature algorithm of receipts.
    pub fn algorithm(&self) -> scitt::Algorithm {
        self.files.algorithm()
    }

    /// The checkpoint key in force as a C2SP verifier key, for monitors and witnesses.
    pub fn checkpoint_key(&self) -> String {
        let ring = self.ring.load();
        let key = ring.checkpoints.iter().find(|key| in_force(&key.record));
        key.map_or_else(String::new, |key| key.public.to_string())
    }

    /// The keys on record and the announced ones, as of the last read.
    pub fn keys(&self) -> (Vec<LogKey>, Vec<KeyAnnouncement>) {
        let ring = self.ring.load();
        (ring.keys.clone(), ring.announced.clone())
    }

    /// Reads the key table again; returns `true` if it changed.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn reload(&self) -> Result<bool, StoreError> {
        let mut noticed = self.noticed.lock().await;
        self.read_table(&mut noticed).await
    }

    async fn read_table(&self, noticed: &mut HashMap<Vec<u8>, Instant>) -> Result<bool, StoreError> {
        // Read the announcements first: a key that is activated between the two reads is seen twice, and not missed.
        let announced = self.store.announced_keys().await?;
        let keys = self.undamaged(self.store.keys().await?);
        let before = self.ring.load_full();
        let changed = before.keys != keys || before.announced != announced;
        // The file of an announced key may appear, or go away, at any time.
        if changed || before.missing.is_some() || !announced.is_empty() {
            let ring = self.ring_of(keys, announced, &before);
            warn_of_lost_files(&before, &ring);
            if let Some(why) = ring.missing.as_ref().filter(|why| before.missing.as_ref() != Some(*why)) {
                tracing::warn!(why, "this process cannot lead");
            }
            self.ring.store(Arc::new(ring));
        }
        let ring = self.ring.load();
        noticed.retain(|kid, _| ring.announced.iter().any(|key| key.kid == *kid));
        for key in &ring.announced {
            if !noticed.contains_key(&key.kid) {
                let (kid, here) = (BASE64URL_NOPAD.encode(&key.kid), ring.at_hand.contains(&key.kid));
                tracing::info!(kid, here, "a new key was announced");
                noticed.insert(key.kid.clone(), Instant::now());
            }
        }
        self.waits.send_replace(ring.at_hand.iter().any(|kid| is_due(noticed, kid)));
        Ok(changed)
    }

    /// The undamaged records. A damaged one is rebuilt from the private key with its kid if that is on this machine;
    /// otherwise it is left out, and the storage check reports it.
    fn undamaged(&self, records: Vec<LogKey>) -> Vec<LogKey> {
        let sound = |record: LogKey| match check_key(&record) {
            Ok(()) => Some(record),
            Err(_) => self.public_of(&record.kid).map(|public| LogKey { public, ..record }),
        };
        records.into_iter().filter_map(sound).collect()
    }

    /// The public key of a private key on this machine, in the form of the key table.
    fn public_of(&self, kid: &[u8]) -> Option<Bytes> {
        let receipt = self.files.find_receipt(kid).map(|key| cose_key(&key).encode());
        let checkpoint = || Some(self.files.find_checkpoint(kid)?.key().to_string().into_bytes());
        receipt.or_else(checkpoint).map(Bytes::from)
    }

    fn ring_of(&self, keys: Vec<LogKey>, announced: Vec<KeyAnnouncement>, before: &KeyRing) -> KeyRing {
        let mut ring = KeyRing::default();
        for record in &keys {
            if let Ok(public) = CoseKey::parse(&record.public) {
                let known = before.receipts.iter().find(|key| key.record.kid == record.kid);
                let private = known
                    .and_then(|key| key.private.clone())
                    .or_else(|| self.files.find_receipt(&record.kid).map(Arc::new));
                ring.receipts.push(ListedKey { record: record.clone(), public, private });
            } else if let Some(public) = verifier_key(&record.public) {
                let known = before.checkpoints.iter().find(|key| key.record.kid == record.kid);
                let private = known
                    .and_then(|key| key.private.clone())
                    .or_else(|| self.files.find_checkpoint(&record.kid).map(Arc::new));
                ring.checkpoints.push(ListedKey { record: record.clone(), public, private });
            }
        }
        let here = |key: &&KeyAnnouncement| match CoseKey::parse(&key.public) {
            Ok(_) => self.files.find_receipt(&key.kid).is_some(),
            Err(_) => self.files.find_checkpoint(&key.kid).is_some(),
        };
        ring.at_hand = announced.iter().filter(here).map(|key| key.kid.clone()).collect();
        ring.missing = missing("receipt", &ring.receipts, &self.files.receipt)
            .or_else(|| missing("checkpoint", &ring.checkpoints, &self.files.checkpoint));
        (ring.keys, ring.announced) = (keys, announced);
        ring
    }

    fn sign_receipt(&self, ring: &KeyRing, head: &CommittedHead) -> Result<HeadSignature, SignFailed> {
        let (key, private) = signing(&ring.receipts, head.size, "receipt")?;
        let header = ReceiptHeader {
            alg: private.algorithm(),
            kid: key.record.kid.clone(),
            iss: self.iss.clone(),
            sub: self.origin.to_string(),
            iat: head.at,
            tree_size: head.size,
        };
        let signed = header.sign_root(&**private, &head.root).map_err(|why| SignFailed(why.to_string()))?;
        let bytes = signed.to_bytes().into();
        Ok(HeadSignature { size: head.size, kind: SignatureKind::Receipt, kid: header.kid, bytes })
    }

    fn sign_checkpoint(&self, ring: &KeyRing, head: &CommittedHead) -> Result<HeadSignature, SignFailed> {
        let (key, private) = signing(&ring.checkpoints, head.size, "checkpoint")?;
        let failed = |why: &dyn std::fmt::Display| SignFailed(why.to_string());
        let checkpoint =
            Checkpoint::new(self.origin.clone(), head.size, head.root).map_err(|why| failed(&why))?;
        let note = checkpoint.sign(&**private).map_err(|why| failed(&why))?;
        let (kid, bytes) = (key.record.kid.clone(), note.to_string().into_bytes().into());
        Ok(HeadSignature { size: head.size, kind: SignatureKind::Checkpoint, kid, bytes })
    }

    fn verifies_checkpoint(&self, key: &VerifierKey, head: &CommittedHead, bytes: &[u8]) -> bool {
        let opened = Checkpoint::open(bytes, &self.origin, std::slice::from_ref(key));
        opened.is_ok_and(|opened| (opened.size(), opened.root()) == (head.size, head.root))
    }
}

#[async_trait]
impl HeadSigner for LogSigner {
    fn makes(&self, size: TreeSize) -> Vec<(SignatureKind, Vec<u8>)> {
        let ring = self.ring.load();
        let receipt = ring.receipts.iter().find(|key| key.record.signs(size)).map(|key| &key.record);
        let checkpoint = ring.checkpoints.iter().find(|key| key.record.signs(size)).map(|key| &key.record);
        let kinds = [(SignatureKind::Receipt, receipt), (SignatureKind::Checkpoint, checkpoint)];
        kinds.into_iter().filter_map(|(kind, key)| Some((kind, key?.kid.clone()))).collect()
    }

    fn sign(&self, head: &CommittedHead) -> Result<Vec<HeadSignature>, SignFailed> {
        let ring = self.ring.load();
        Ok(vec![self.sign_receipt(&ring, head)?, self.sign_checkpoint(&ring, head)?])
    }

    fn knows(&self, head: &CommittedHead, kept: &HeadSignature) -> bool {
        let ring = self.ring.load();
        let is_its = |record: &LogKey| record.kid == kept.kid;
        match kept.kind {
            SignatureKind::Receipt => {
                let key = ring.receipts.iter().find(|key| is_its(&key.record));
                key.is_none_or(|key| {
                    let signed = SignedRoot::parse(kept.bytes.clone()).is_ok_and(|signed| {
                        signed.tree_size() == head.size && signed.verify(&head.root, &key.public.key).is_ok()
                    });
                    signed && key.record.signs(head.size)
                })
            }
            SignatureKind::Checkpoint => {
                let key = ring.checkpoints.iter().find(|key| is_its(&key.record));
                key.is_none_or(|key| {
                    key.record.signs(head.size) && self.verifies_checkpoint(&key.public, head, &kept.bytes)
                })
            }
            SignatureKind::Cosignature => true,
        }
    }

    fn missing(&self) -> Option<String> {
        self.ring.load().missing.clone()
    }

    async fn refresh(&self) -> Result<(), SignFailed> {
        self.reload().await.map_err(|error| SignFailed(error.to_string()))?;
        self.missing().map_or(Ok(()), |why| Err(SignFailed(why)))
    }

    async fn key_waits(&self) {
        // The sender lives in this struct, so waiting cannot fail.
        let _ = self.waits.subscribe().wait_for(|waits| *waits).await;
    }

    async fn take_up(&self, epoch: u64) -> Result<(), SignFailed> {
        let failed = |error: StoreError| SignFailed(error.to_string());
        let mut noticed = self.noticed.lock().await;
        // Taking a key up cannot be undone, so its file must be here now.
        self.read_table(&mut noticed).await.map_err(failed)?;
        let at_hand = self.ring.load().at_hand.clone();
        for kid in at_hand.iter().filter(|kid| is_due(&noticed, kid)) {
            if let Some(key) = self.store.take_up_key(kid, epoch, now()).await.map_err(failed)? {
                let kid = BASE64URL_NOPAD.encode(&key.kid);
                tracing::info!(kid, from_size = key.from_size.get(), "a new key signs");
            }
        }
        self.read_table(&mut noticed).await.map_err(failed)?;
        self.missing().map_or(Ok(()), |why| Err(SignFailed(why)))
    }
}

/// Logs the announced keys whose files were on this machine and are not any more.
fn warn_of_lost_files(before: &KeyRing, now: &KeyRing) {
    let is_lost =
        |key: &&KeyAnnouncement| before.at_hand.contains(&key.kid) && !now.at_hand.contains(&key.kid);
    for key in now.announced.iter().filter(is_lost) {
        let kid = BASE64URL_NOPAD.encode(&key.kid);
        tracing::warn!(kid, "the file of an announced key is gone: the key before it goes on signing");
    }
}

/// Returns `true` if every process has had the time to list an announced key.
fn is_due(noticed: &HashMap<Vec<u8>, Instant>, kid: &[u8]) -> bool {
    noticed.get(kid).is_some_and(|since| since.elapsed() >= KEY_LISTED)
}

/// Returns `true` if a recorded key verifies receipts. The other kind is a note key (`name+id+key`).
pub fn is_receipt_key(key: &LogKey) -> bool {
    CoseKey::parse(&key.public).is_ok()
}

/// Parses a recorded note key.
pub fn verifier_key(public: &[u8]) -> Option<VerifierKey> {
    std::str::from_utf8(public).ok()?.parse().ok()
}

fn in_force(key: &LogKey) -> bool {
    key.retired_at.is_none()
}

fn cose_key(key: &SigningKey) -> CoseKey {
    CoseKey {
        kid: Some(receipt_kid(key)),
        algorithm: Some(key.algorithm()),
        ..CoseKey::bare(key.public_key().clone())
    }
}

/// The key that signs a head of this size, with its private key.
fn signing<'r, P, S>(
    keys: &'r [ListedKey<P, S>],
    size: TreeSize,
    what: &str,
) -> Result<(&'r ListedKey<P, S>, &'r Arc<S>), SignFailed> {
    let key = keys.iter().find(|key| key.record.signs(size));
    let key = key.ok_or_else(|| SignFailed(format!("no {what} key signs heads of size {size}")))?;
    let private = key.private.as_ref().ok_or_else(|| {
        let kid = BASE64URL_NOPAD.encode(&key.record.kid);
        SignFailed(format!("the {what} key {kid}, which signs heads of size {size}, is not on this machine"))
    })?;
    Ok((key, private))
}

/// The reason why this process cannot sign the next head; `None` if it can.
fn missing<P, S>(what: &str, keys: &[ListedKey<P, S>], configured: &std::path::Path) -> Option<String> {
    let key = keys.iter().find(|key| in_force(&key.record) && key.private.is_none())?;
    let kid = BASE64URL_NOPAD.encode(&key.record.kid);
    let place = file_of_kid(configured, &key.record.kid);
    Some(format!(
        "the {what} key {kid} signs from size {} on, and its file is not here: copy it to {} (mode 0600)",
        key.record.from_size,
        place.display()
    ))
}

#[cfg(test)]
#[path = "signer_tests.rs"]
mod tests;
