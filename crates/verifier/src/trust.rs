//! Trusted logs, issuers and certificate roots, read from a `trust.toml`.
//!
//! The leaf rule and profile of a log are configured here and never inferred from a receipt. No message or server ever
//! adds to a trust store.

mod document;

use merkle::TreeSize;
use scitt::key::KeyEnd;
use scitt::x509::RootCertificate;
use scitt::{CoseKey, PublicKey};

use crate::verdict::{Check, CheckName, Code};

pub use document::{TrustError, TrustMistake};
pub use scitt::key::{KeyTextError, read_key};

/// Maximum size of a `trust.toml` in bytes.
pub const MAX_TRUST_BYTES: usize = 1 << 20;

/// Trust anchors of a verifier. The default is empty and trusts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustStore {
    /// Trusted transparency logs.
    pub logs: Vec<TrustedLog>,
    /// Trusted issuers of statements.
    pub issuers: Vec<TrustedIssuer>,
    /// Certificate roots that are trusted for the names in their certificates.
    pub roots: Vec<TrustedRoot>,
    /// Rule for the issuer's signature.
    pub issuer_signature: IssuerSignature,
    /// If `true`, an issuer that is a `did:key` or `did:jwk` needs no entry: the key in the DID verifies its statements.
    pub self_certified: bool,
}

/// Trust anchor for a transparency log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedLog {
    /// Issuer (`iss`) of the log's receipts. Only logs of [`HeaderProfile::Rfc9942`] may lack one.
    pub iss: Option<String>,
    /// Origin of the log: `sub` of its receipts and first line of its checkpoints. `None` accepts any `sub`.
    pub origin: Option<String>,
    /// Receipt keys. Retired keys remain, to verify the receipts that they signed.
    pub keys: Vec<CoseKey>,
    /// Rule by which the log makes a leaf from a statement.
    pub leaf_rule: LeafRule,
    /// Headers that the log's receipts must have.
    pub profile: HeaderProfile,
    /// Checkpoint keys as C2SP vkeys. They verify tlog-proofs and checkpoints, not receipts.
    pub checkpoint_keys: Vec<String>,
    /// Checkpoint keys that were replaced or are compromised; they remain valid for smaller trees.
    pub retired_checkpoint_keys: Vec<RetiredCheckpointKey>,
    /// Monitors that compute the search index of the log from its statements.
    pub index_monitors: IndexMonitors,
}

/// Monitors whose attestations of heads of a search index count, and how many of them a reader requires. The default
/// requires none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexMonitors {
    /// Public keys as C2SP vkeys.
    pub keys: Vec<String>,
    /// Number of keys that must have attested a head; 0 only without keys.
    pub required: usize,
}

/// A checkpoint key whose signatures are valid only below a tree size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetiredCheckpointKey {
    /// Public key as a C2SP vkey.
    pub key: String,
    /// End of the key's validity.
    pub end: KeyEnd,
}

/// Refuses a signature over a tree at whose size the key was already replaced or compromised.
///
/// # Errors
/// Returns a failed check with [`Code::LogKeyCompromised`] or [`Code::LogKeyRetired`].
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
    /// Creates a trust anchor with the defaults of this project's logs: [`LeafRule::Sha256OfStatement`] and
    /// [`HeaderProfile::Rfc9943`].
    pub fn new(iss: impl Into<String>, origin: impl Into<String>, keys: Vec<CoseKey>) -> Self {
        Self {
            iss: Some(iss.into()),
            origin: Some(origin.into()),
            keys,
            leaf_rule: LeafRule::default(),
            profile: HeaderProfile::default(),
            checkpoint_keys: Vec::new(),
            retired_checkpoint_keys: Vec::new(),
            index_monitors: IndexMonitors::default(),
        }
    }

    /// Returns all checkpoint keys, retired ones last.
    pub fn all_checkpoint_keys(&self) -> impl Iterator<Item = &String> {
        self.checkpoint_keys.iter().chain(self.retired_checkpoint_keys.iter().map(|retired| &retired.key))
    }

    /// Returns the end of validity of one of the log's receipt keys.
    pub(crate) fn end_of(&self, key: &PublicKey) -> KeyEnd {
        self.keys.iter().find(|known| known.key == *key).map_or_else(KeyEnd::default, |known| known.end)
    }

    /// Returns a name for messages: the origin, else `iss`.
    pub fn name(&self) -> &str {
        self.origin.as_deref().or(self.iss.as_deref()).unwrap_or("unnamed log")
    }
}

/// Rule by which a log makes the input of a leaf hash from a statement. A log never changes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LeafRule {
    /// The leaf input is SHA-256 of the statement.
    #[default]
    Sha256OfStatement,
    /// The leaf input is the statement.
    Statement,
}

/// Headers that a message must have in addition to its signature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeaderProfile {
    /// RFC 9943, section 6: the CWT claims `iss` and `sub`, and a key identifier, all protected.
    #[default]
    Rfc9943,
    /// Only the labels that RFC 9942 and RFC 9052 require: `alg` and `vds`. Keys and logs are then tried one by one.
    Rfc9942,
}

/// Rule for the issuer's signature of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IssuerSignature {
    /// The signature must verify with a trusted key.
    #[default]
    Required,
    /// A statement of an unknown issuer counts as verified if a trusted log registered it, since the log has verified
    /// the signature. The signature of an issuer in the trust store must still verify.
    LeftToLog,
}

/// Trust anchor for an issuer of statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedIssuer {
    /// Issuer (`iss`) of the statements.
    pub iss: String,
    /// Public keys of the issuer. A `did:key` or `did:jwk` needs none, as it contains its key.
    pub keys: Vec<CoseKey>,
    /// Roots under which any certificate may sign for this issuer. The names in it do not count.
    pub roots: Vec<RootCertificate>,
    /// Extended key usage (an OID) that those certificates must have.
    pub eku: Option<String>,
    /// Headers that the issuer's statements must have.
    pub profile: HeaderProfile,
}

impl TrustedIssuer {
    /// Creates a trust anchor for an issuer that signs with these keys.
    pub fn new(iss: impl Into<String>, keys: Vec<CoseKey>) -> Self {
        Self { iss: iss.into(), keys, ..Self::default() }
    }
}

/// A root whose certificates are trusted for the URIs and DNS names in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedRoot {
    /// Root certificate.
    pub certificate: RootCertificate,
    /// Extended key usage (an OID) that the end-entity certificate must have.
    pub eku: Option<String>,
}

impl TrustStore {
    /// Returns `true` if there are no logs, issuers and roots.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.issuers.is_empty() && self.roots.is_empty()
    }

    /// Returns the logs that issue receipts as `iss`.
    pub fn logs_of<'s>(&'s self, iss: &'s str) -> impl Iterator<Item = &'s TrustedLog> {
        self.logs.iter().filter(move |log| log.iss.as_deref() == Some(iss))
    }

    /// Returns the entries for an issuer.
    pub fn issuers_of<'s>(&'s self, iss: &'s str) -> impl Iterator<Item = &'s TrustedIssuer> {
        self.issuers.iter().filter(move |issuer| issuer.iss == iss)
    }

    /// Adds `key` as a key of the issuer. Returns `false` if it was listed already.
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

    /// Removes all entries for an issuer. Returns `true` if there was one.
    pub fn remove_issuer(&mut self, iss: &str) -> bool {
        let before = self.issuers.len();
        self.issuers.retain(|issuer| issuer.iss != iss);
        self.issuers.len() != before
    }

    /// Adds a log, and replaces one with the same `iss` and origin.
    pub fn put_log(&mut self, log: TrustedLog) {
        self.logs.retain(|known| (&known.iss, &known.origin) != (&log.iss, &log.origin));
        self.logs.push(log);
    }

    /// Removes the logs with this `iss` or origin. Returns `true` if there was one.
    pub fn remove_log(&mut self, iss_or_origin: &str) -> bool {
        let before = self.logs.len();
        let named = |name: &Option<String>| name.as_deref() == Some(iss_or_origin);
        self.logs.retain(|log| !named(&log.iss) && !named(&log.origin));
        self.logs.len() != before
    }
}

/// Keys to try for a message with a given `kid`.
pub(crate) struct Candidates<'t> {
    /// Keys with this `kid`, or all keys if the message has none.
    pub(crate) meant: Vec<&'t PublicKey>,
    /// Keys that are configured without `kid`, any of which the message may name.
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

    /// Returns the first key that `verify` accepts.
    ///
    /// If no key has the message's `kid`, the error is [`NoCandidate::Unknown`], as the signature may be genuine.
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

/// Error of [`Candidates::find`].
pub(crate) enum NoCandidate<E> {
    /// The key that the message names refuses the signature.
    Refused(E),
    /// The key that the message names is not in the trust store.
    Unknown,
}
