//! What was checked, what was not, and what follows from it.

use std::fmt;

use merkle::{EntryDigest, LeafIndex, TreeSize};
use serde::{Serialize, Serializer};

use crate::witnessed::CheckpointFacts;

/// Everything a verification has to say.
///
/// Details quote the messages that were checked: escape them before printing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The answer.
    pub outcome: Outcome,
    /// Why the answer is not [`Outcome::Verified`].
    pub reason: Option<Code>,
    /// What the statement says of itself; none if it is no statement.
    pub statement: Option<StatementFacts>,
    /// What each receipt came to, in the order given: attached ones first.
    pub receipts: Vec<ReceiptFacts>,
    /// The checkpoint that was shown, and who cosigned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointFacts>,
    /// Every check, done or not.
    pub checks: Vec<Check>,
}

impl Verdict {
    /// Whether everything that must be checked was, and held.
    pub fn is_verified(&self) -> bool {
        self.outcome == Outcome::Verified
    }

    /// The checks of this name, over all receipts.
    pub fn checks_named(&self, name: CheckName) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.name == name)
    }

    /// The check that decided, unless all held: what to show when there is room for one line.
    pub fn decisive(&self) -> Option<&Check> {
        let reason = self.reason?;
        let open = |check: &&Check| check.state != State::Ok;
        let named = self.checks.iter().find(|check| check.code == Some(reason));
        named.or_else(|| self.checks.iter().find(open))
    }

    /// The detail of the check that decided; empty if all held.
    pub fn why(&self) -> &str {
        self.decisive().map_or("", |check| &check.detail)
    }
}

/// The three answers. The command line ends with [`exit_code`](Self::exit_code).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every necessary check was done and held.
    Verified,
    /// A check was done and did not hold.
    Failed,
    /// Nothing is known to be wrong, but a necessary check could not be done.
    NotVerified,
}

impl Outcome {
    /// 0, 3 and 4: a forgery and a missing key are different news.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Verified => 0,
            Self::Failed => 3,
            Self::NotVerified => 4,
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Which.
    pub name: CheckName,
    /// The receipt it is about (its place in [`Verdict::receipts`]); none for the statement's own.
    pub receipt: Option<usize>,
    /// What came of it.
    pub state: State,
    /// Why it failed or was not done; none if it held.
    pub code: Option<Code>,
    /// The values compared, for a reader.
    pub detail: String,
}

impl Check {
    pub(crate) fn ok(name: CheckName, detail: impl Into<String>) -> Self {
        Self { name, receipt: None, state: State::Ok, code: None, detail: detail.into() }
    }

    pub(crate) fn failed(name: CheckName, code: Code, detail: impl Into<String>) -> Self {
        Self { name, receipt: None, state: State::Failed, code: Some(code), detail: detail.into() }
    }

    pub(crate) fn not_done(name: CheckName, code: Code, detail: impl Into<String>) -> Self {
        Self { name, receipt: None, state: State::NotDone, code: Some(code), detail: detail.into() }
    }
}

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Done, and it held.
    Ok,
    /// Done, and it did not hold.
    Failed,
    /// Not done; the check's code says why.
    NotDone,
}

macro_rules! words {
    ($(#[$of:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word for it; never changes.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// The checks, in the order they are listed.
    CheckName {
        /// The statement is a COSE_Sign1 as RFC 9943 has it.
        Statement = "statement",
        /// The protected header carries what RFC 9943 section 6 demands.
        Headers = "headers",
        /// A trusted key of the issuer signed the statement.
        IssuerSignature = "issuer-signature",
        /// The dates in the statement's claims allow its use.
        StatementDates = "statement-dates",
        /// The payload given is the one that was signed.
        Payload = "payload",
        /// What stands unprotected under label 100 beside a conversation record repeats what the record says. Not checked by
        /// this crate, which reads no payloads.
        TraceMetadata = "trace-metadata",
        /// The receipt is one as RFC 9942 has it, of a log we trust.
        Receipt = "receipt",
        /// The statement's leaf leads to the root that the log signed.
        Inclusion = "inclusion",
        /// A trusted key of the log signed the root.
        ReceiptSignature = "receipt-signature",
        /// The dates in the receipt's claims allow its use.
        ReceiptDates = "receipt-dates",
        /// The tree that is known is the beginning of the newer one.
        Consistency = "consistency",
        /// The checkpoint is the log's, and the statement is under it.
        Checkpoint = "checkpoint",
        /// Others have seen the log grow without forking.
        Witnesses = "witnesses",
    }
}

impl CheckName {
    /// The same in plain words, for a list on a terminal.
    pub fn label(self) -> String {
        self.as_str().replace('-', " ")
    }
}

words! {
    /// Why a check failed or was not done.
    Code {
        /// The statement cannot be read.
        MalformedStatement = "malformed-statement",
        /// The statement lacks a required protected header.
        MissingHeader = "missing-header",
        /// No trust anchor stands for this issuer.
        UnknownIssuer = "unknown-issuer",
        /// The issuer is known, but not the key that the statement names.
        UnknownIssuerKey = "unknown-issuer-key",
        /// The issuer's signature does not verify.
        IssuerSignatureInvalid = "issuer-signature-invalid",
        /// The certificate chain does not hold.
        CertificatePathInvalid = "certificate-path-invalid",
        /// The statement names a certificate by hash and does not bring it.
        CertificateMissing = "certificate-missing",
        /// The certificate does not speak for the issuer that the statement names.
        IssuerNotBound = "issuer-not-bound",
        /// The claims say that the statement had ended.
        StatementExpired = "statement-expired",
        /// The claims say that the statement had not begun.
        StatementNotYetValid = "statement-not-yet-valid",
        /// The payload is detached and was not given.
        PayloadMissing = "payload-missing",
        /// Nothing was given to compare the payload with.
        PayloadNotGiven = "payload-not-given",
        /// The payload given is not the one that was signed.
        PayloadDigestMismatch = "payload-digest-mismatch",
        /// The hash algorithm of the hash envelope is none we compute.
        UnsupportedHash = "unsupported-hash",
        /// Trace-metadata, which nobody signed, says something else than the record that was signed.
        TraceMetadataMismatch = "trace-metadata-mismatch",
        /// There is nothing to compare the trace-metadata with.
        TraceMetadataNotCompared = "trace-metadata-not-compared",
        /// There is no receipt.
        NoReceipt = "no-receipt",
        /// The receipt cannot be read.
        MalformedReceipt = "malformed-receipt",
        /// The receipt is over another verifiable data structure than RFC9162_SHA256 and CCF_LEDGER_SHA256.
        UnsupportedStructure = "unsupported-structure",
        /// The receipt lacks what its log's profile demands.
        ReceiptIncomplete = "receipt-incomplete",
        /// The receipt is for another log under the same issuer.
        ReceiptSubjectMismatch = "receipt-subject-mismatch",
        /// No trusted log issued this receipt.
        UnknownLog = "unknown-log",
        /// The log is trusted, but not the key that the receipt names.
        UnknownLogKey = "unknown-log-key",
        /// The key that signed was replaced before a tree of this size was signed.
        LogKeyRetired = "log-key-retired",
        /// The key that signed was compromised when a tree of this size was signed.
        LogKeyCompromised = "log-key-compromised",
        /// The proof cannot belong to any tree.
        ReceiptProofInvalid = "receipt-proof-invalid",
        /// The root that the proof leads to from this statement is not the one that the log signed.
        ReceiptRootMismatch = "receipt-root-mismatch",
        /// The log's signature is not one over the root.
        ReceiptSignatureInvalid = "receipt-signature-invalid",
        /// The claims say that the receipt has ended.
        ReceiptExpired = "receipt-expired",
        /// The receipt is dated in the future.
        ReceiptNotYetValid = "receipt-not-yet-valid",
        /// There is no trust anchor at all.
        NoTrustAnchors = "no-trust-anchors",
        /// The trust store leaves this check to the log.
        LeftToLog = "left-to-log",
        /// No witness is configured.
        NoWitness = "no-witness",
        /// Witnesses are required, and no checkpoint is there that they could have cosigned.
        NoCheckpoint = "no-checkpoint",
        /// The checkpoint cannot be read.
        MalformedCheckpoint = "malformed-checkpoint",
        /// No checkpoint key of this log is trusted that signed it.
        UnknownCheckpointKey = "unknown-checkpoint-key",
        /// The signature of the log on its checkpoint does not verify.
        CheckpointSignatureInvalid = "checkpoint-signature-invalid",
        /// The checkpoint is of another tree than any receipt.
        CheckpointOtherTree = "checkpoint-other-tree",
        /// Receipt and checkpoint give two roots to one tree size.
        CheckpointRootMismatch = "checkpoint-root-mismatch",
        /// The tlog-proof cannot be read.
        MalformedTlogProof = "malformed-tlog-proof",
        /// The tlog-proof does not lead from this statement to its checkpoint.
        TlogProofMismatch = "tlog-proof-mismatch",
        /// Fewer witnesses cosigned than the policy asks for.
        QuorumNotMet = "quorum-not-met",
        /// There is no consistency proof in the receipt.
        NoConsistencyProof = "no-consistency-proof",
        /// The consistency proof starts from another size than the one that is known.
        ConsistencyOtherSize = "consistency-other-size",
        /// The consistency proof does not lead from the tree that is known to the one that is signed.
        ConsistencyMismatch = "consistency-mismatch",
        /// An earlier check stands in the way.
        NotReached = "not-reached",
    }
}

/// What the statement says of itself. Nothing here is proven unless the verdict is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementFacts {
    /// SHA-256 of the statement: its entry ID.
    #[serde(serialize_with = "as_text")]
    pub entry: EntryDigest,
    /// The issuer.
    pub iss: Option<String>,
    /// The subject.
    pub sub: Option<String>,
    /// The content type, or that of the preimage for a hash envelope.
    pub content_type: Option<String>,
    /// The name of the signature algorithm.
    pub algorithm: Option<&'static str>,
}

/// What a receipt says. Nothing here is proven unless `verified`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReceiptFacts {
    /// Whether every check of this receipt held.
    pub verified: bool,
    /// The log: its origin or issuer as the trust store has it, else the issuer the receipt names.
    pub log: Option<String>,
    /// The log's key identifier, unpadded base64url.
    pub kid: Option<String>,
    /// The signature algorithm.
    pub algorithm: Option<&'static str>,
    /// The name of the verifiable data structure.
    pub structure: Option<&'static str>,
    /// Where in the log the statement is; ledgers do not say.
    pub position: Option<Position>,
    /// Which transaction of a CCF ledger signed the root.
    pub transaction: Option<String>,
    /// The root that the proof leads to, in hexadecimal.
    pub root: Option<String>,
    /// When the log says that it signed the root (unix seconds).
    pub iat: Option<i64>,
}

/// A leaf and the tree it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    /// The leaf.
    #[serde(serialize_with = "index")]
    pub leaf_index: LeafIndex,
    /// The size of the tree whose root is signed.
    #[serde(serialize_with = "size")]
    pub tree_size: TreeSize,
    /// Whether the log signed the size, and so the index. Without that both are hearsay: RFC 9942 signs neither.
    pub signed: bool,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hearsay = if self.signed { "" } else { " (position not signed)" };
        write!(f, "leaf {} of {}{hearsay}", self.leaf_index.get(), self.tree_size.get())
    }
}

fn as_text<S: Serializer>(value: &EntryDigest, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn index<S: Serializer>(value: &LeafIndex, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(value.get())
}

fn size<S: Serializer>(value: &TreeSize, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(value.get())
}
