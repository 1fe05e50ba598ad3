//! Whom a verifier believes: logs, issuers and certificate roots, from a `trust.toml`.
//!
//! A log's leaf rule and profile are said here, by whoever decided to trust it, and never guessed from
//! a receipt. Nothing is ever added because a message or a server said so.

mod document;

use merkle::TreeSize;
use scitt::key::KeyEnd;
use scitt::x509::RootCertificate;
use scitt::{CoseKey, PublicKey};

use crate::verdict::{Check, CheckName, Code};

pub use document::{Mistake, TrustError};
pub use scitt::key::{KeyTextError, read_key};

/// The largest `trust.toml` that is read.
pub const MAX_TRUST_BYTES: usize = 1 << 20;

/// Everything that is believed. The default believes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustStore {
    /// Transparency logs.
    pub logs: Vec<TrustedLog>,
    /// Issuers of statements.
    pub issuers: Vec<TrustedIssuer>,
    /// Roots whose certificates speak for the names in them.
    pub roots: Vec<TrustedRoot>,
    /// What is asked of the issuer's signature.
    pub issuer_signature: IssuerSignature,
    /// Whether a statement whose `iss` is a did:key or did:jwk is believed to be its own.
    pub self_certified: bool,
}

/// A transparency log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedLog {
    /// `iss` of its receipts. Only logs of [`Profile::Rfc9942`] may lack one.
    pub iss: Option<String>,
    /// `sub` of its receipts and first line of its checkpoints; any `sub` is taken when absent.
    pub origin: Option<String>,
    /// Its receipt keys. Retired ones stay, for receipts they signed.
    pub keys: Vec<CoseKey>,
    /// How it turns a statement into a leaf.
    pub leaf_rule: LeafRule,
    /// What its receipts must carry.
    pub profile: Profile,
    /// Its checkpoint keys as C2SP vkeys: what tlog-proofs and checkpoints are checked with, and receipts are not.
    pub checkpoint_keys: Vec<String>,
    /// Its checkpoint keys that were replaced or are compromised: they count for smaller trees.
    pub retired_checkpoint_keys: Vec<RetiredCheckpointKey>,
}

/// A checkpoint key whose signatures end at a tree size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetiredCheckpointKey {
    /// The key as a C2SP vkey.
    pub key: String,
    /// Where its signatures end.
    pub end: KeyEnd,
}

/// Refuses the signature of a key over a tree of a size at which it had been replaced or was compromised.
pub(crate) fn refuse_ended(name: CheckName, kid: &str, end: &KeyEnd, tree: TreeSize) -> Result<(), Check> {
    let reached = |size: Option<u64>| size.filter(|size| *size <= tree.get());
    if let Some(size) = reached(end.compromised_size) {
        let detail = format!(
            "key {kid} is compromised: its signatures over {size} and more leaves count for nothing, and this tree has {tree}"
        );
        return Err(Check::failed(name, Code::LogKeyCompromised, detail));
    }
    if let Some(size) = reached(end.retired_size) {
        let detail = format!("key {kid} signs no tree of {size} or more leaves, and this one has {tree}");
        return Err(Check::failed(name, Code::LogKeyRetired, detail));
    }
    Ok(())
}

impl TrustedLog {
    /// A log as we run them.
    pub fn new(iss: impl Into<String>, origin: impl Into<String>, keys: Vec<CoseKey>) -> Self {
        Self {
            iss: Some(iss.into()),
            origin: Some(origin.into()),
            keys,
            leaf_rule: LeafRule::default(),
            profile: Profile::default(),
            checkpoint_keys: Vec::new(),
            retired_checkpoint_keys: Vec::new(),
        }
    }

    /// Its checkpoint keys, retired ones last.
    pub fn all_checkpoint_keys(&self) -> impl Iterator<Item = &String> {
        self.checkpoint_keys.iter().chain(self.retired_checkpoint_keys.iter().map(|retired| &retired.key))
    }

    /// Where the signatures of one of its receipt keys end.
    pub(crate) fn end_of(&self, key: &PublicKey) -> KeyEnd {
        self.keys.iter().find(|known| known.key == *key).map_or_else(KeyEnd::default, |known| known.end)
    }

    /// What to call it.
    pub fn name(&self) -> &str {
        self.origin.as_deref().or(self.iss.as_deref()).unwrap_or("unnamed log")
    }
}

/// How a log turns a statement into the input of its leaf hash. Constant for the life of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LeafRule {
    /// The entry is SHA-256 of the statement.
    #[default]
    Sha256OfStatement,
    /// The entry is the statement.
    Statement,
}

/// What a message must carry beside its signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// RFC 9943 section 6: claims with iss and sub, and a key name, all protected.
    #[default]
    Rfc9943,
    /// Only what RFC 9942 and RFC 9052 ask: alg and vds. Key and log are then tried, not looked up.
    Rfc9942,
}

/// What is asked of the issuer's signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IssuerSignature {
    /// It must verify with a trusted key.
    #[default]
    Required,
    /// A statement of an issuer we know nothing of is verified if a trusted log registered it: the log
    /// has checked. One of an issuer that we do know must still verify.
    LeftToLog,
}

/// An issuer of statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedIssuer {
    /// `iss` of its statements.
    pub iss: String,
    /// Its keys. None are needed for a did:key or did:jwk, which is its own key.
    pub keys: Vec<CoseKey>,
    /// Roots under which any certificate may sign as this issuer, whatever its name.
    pub roots: Vec<RootCertificate>,
    /// Extended key usage (an OID) demanded of those certificates.
    pub eku: Option<String>,
    /// What its statements must carry.
    pub profile: Profile,
}

impl TrustedIssuer {
    /// An issuer that signs with these keys.
    pub fn new(iss: impl Into<String>, keys: Vec<CoseKey>) -> Self {
        Self { iss: iss.into(), keys, ..Self::default() }
    }
}

/// A root whose certificates speak for the URIs and DNS names in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedRoot {
    /// The certificate.
    pub certificate: RootCertificate,
    /// Extended key usage (an OID) demanded of the end entity.
    pub eku: Option<String>,
}

impl TrustStore {
    /// Whether nothing at all is believed.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.issuers.is_empty() && self.roots.is_empty()
    }

    /// The logs that issue receipts as `iss`.
    pub fn logs_of<'s>(&'s self, iss: &'s str) -> impl Iterator<Item = &'s TrustedLog> {
        self.logs.iter().filter(move |log| log.iss.as_deref() == Some(iss))
    }

    /// The entries for an issuer.
    pub fn issuers_of<'s>(&'s self, iss: &'s str) -> impl Iterator<Item = &'s TrustedIssuer> {
        self.issuers.iter().filter(move |issuer| issuer.iss == iss)
    }

    /// Believes that `key` is a key of the issuer. Answers whether that is news.
    pub fn add_issuer_key(&mut self, iss: &str, key: CoseKey) -> bool {
        match self.issuers.iter_mut().find(|issuer| issuer.iss == iss) {
            Some(issuer) if issuer.keys.contains(&key) => false,
            Some(issuer) => {
                issuer.keys.push(key);
                true
            }
            None => {
                self.issuers.push(TrustedIssuer::new(iss, vec![key]));
                true
            }
        }
    }

    /// No longer believes anything of an issuer. Answers whether it was there.
    pub fn remove_issuer(&mut self, iss: &str) -> bool {
        let before = self.issuers.len();
        self.issuers.retain(|issuer| issuer.iss != iss);
        self.issuers.len() != before
    }

    /// Believes a log, in place of any with the same iss and origin.
    pub fn put_log(&mut self, log: TrustedLog) {
        self.logs.retain(|known| (&known.iss, &known.origin) != (&log.iss, &log.origin));
        self.logs.push(log);
    }

    /// No longer believes the logs with this iss or origin. Answers whether there was one.
    pub fn remove_log(&mut self, iss_or_origin: &str) -> bool {
        let before = self.logs.len();
        let named = |name: &Option<String>| name.as_deref() == Some(iss_or_origin);
        self.logs.retain(|log| !named(&log.iss) && !named(&log.origin));
        self.logs.len() != before
    }
}

/// Which keys to try for a message that names `kid`.
pub(crate) struct Candidates<'t> {
    /// Keys that go by this kid, or all keys when the message names none.
    pub(crate) meant: Vec<&'t PublicKey>,
    /// Keys whose owner gave us no kid: the message's may be theirs.
    pub(crate) possible: Vec<&'t PublicKey>,
}

impl<'t> Candidates<'t> {
    pub(crate) fn of(keys: &'t [CoseKey], kid: Option<&[u8]>) -> Self {
        let Some(kid) = kid else {
            return Self { meant: keys.iter().map(|key| &key.key).collect(), possible: Vec::new() };
        };
        let (meant, others): (Vec<_>, Vec<_>) = keys
            .iter()
            .partition(|key| key.kid.as_deref() == Some(kid) || key.key.thumbprint().as_slice() == kid);
        let possible = others.into_iter().filter(|key| key.kid.is_none());
        Self {
            meant: meant.into_iter().map(|key| &key.key).collect(),
            possible: possible.map(|key| &key.key).collect(),
        }
    }

    /// The first key that `verify` accepts.
    ///
    /// A message that names a key we do not have is refused as unknown, not as forged.
    pub(crate) fn find<E>(
        &self,
        mut verify: impl FnMut(&PublicKey) -> Result<(), E>,
    ) -> Result<&'t PublicKey, NoCandidate<E>> {
        let mut refused = None;
        for key in &self.meant {
            match verify(key) {
                Ok(()) => return Ok(key),
                Err(why) => refused = Some(why),
            }
        }
        if let Some(why) = refused {
            return Err(NoCandidate::Refused(why));
        }
        let possible = self.possible.iter().find(|key| verify(key).is_ok());
        possible.copied().ok_or(NoCandidate::Unknown)
    }
}

/// Why no key was found that signed a message.
pub(crate) enum NoCandidate<E> {
    /// The key that was meant refuses the signature.
    Refused(E),
    /// We do not have the key that was meant.
    Unknown,
}
