//! The result of a verification: the checks done, the checks not done, and the conclusion.

use std::fmt;

use merkle::{EntryDigest, LeafIndex, TreeSize};
use serde::{Serialize, Serializer};

/// Complete result of a verification.
///
/// Details quote text of the verified messages: escape them before printing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementVerdict {
    /// Overall result.
    pub outcome: VerificationOutcome,
    /// Reason why `outcome` is not [`VerificationOutcome::Verified`].
    pub reason: Option<Code>,
    /// Contents of the statement; `None` if it is malformed.
    pub statement: Option<StatementFacts>,
    /// Contents of each receipt with its result, attached receipts first.
    pub receipts: Vec<ReceiptFacts>,
    /// Contents of the checkpoint that was shown, and its cosignatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointFacts>,
    /// All checks, including those not done.
    pub checks: Vec<Check>,
}

impl StatementVerdict {
    /// Returns `true` if all required checks were done and passed.
    pub fn is_verified(&self) -> bool {
        self.outcome == VerificationOutcome::Verified
    }

    /// Returns the checks with this name, over all receipts.
    pub fn checks_named(&self, name: CheckName) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.name == name)
    }

    /// Inserts a check of the statement that this crate does not make, in the order of [`CheckName`]. A failed check
    /// fails the verdict; a check that was not done does not change it.
    pub fn add(&mut self, check: Check) {
        if check.state == CheckState::Failed && self.outcome != VerificationOutcome::Failed {
            (self.outcome, self.reason) = (VerificationOutcome::Failed, check.code);
        }
        let after = self.checks.iter().rposition(|other| other.name <= check.name);
        self.checks.insert(after.map_or(0, |at| at + 1), check);
    }

    /// Inserts a required check of the statement that this crate does not make. If it was not done, nothing is verified.
    pub fn require(&mut self, check: Check) {
        if check.state == CheckState::NotDone && self.outcome == VerificationOutcome::Verified {
            (self.outcome, self.reason) = (VerificationOutcome::NotVerified, check.code);
        }
        self.add(check);
    }

    /// Returns the check that decided the outcome, for a one-line summary; `None` if all checks passed.
    pub fn decisive(&self) -> Option<&Check> {
        let reason = self.reason?;
        let open = |check: &&Check| check.state != CheckState::Ok;
        let named = self.checks.iter().find(|check| check.code == Some(reason));
        named.or_else(|| self.checks.iter().find(open))
    }

    /// Returns the detail of the decisive check; empty if all checks passed.
    pub fn why(&self) -> &str {
        self.decisive().map_or("", |check| &check.detail)
    }
}

/// The three possible results of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerificationOutcome {
    /// All required checks were done and passed.
    Verified,
    /// A check failed.
    Failed,
    /// No check failed, but a required check could not be done.
    NotVerified,
}

impl VerificationOutcome {
    /// Concludes from checks, with the reason: a failed check outweighs one that was not done. Checks that were not
    /// reached or not required do not count.
    pub fn of(checks: &[Check]) -> (Self, Option<Code>) {
        let first = |state| {
            let decides = |check: &&Check| {
                let counts =
                    !matches!(check.code, Some(Code::NotReached | Code::NoWitness | Code::NoMonitor));
                check.state == state && counts
            };
            checks.iter().find(decides).and_then(|check| check.code)
        };
        match (first(CheckState::Failed), first(CheckState::NotDone)) {
            (Some(code), _) => (Self::Failed, Some(code)),
            (None, Some(code)) => (Self::NotVerified, Some(code)),
            (None, None) => (Self::Verified, None),
        }
    }

    /// Returns the exit code of the command line: 0, 3 for a failed check, or 4 for a check not done.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Verified => 0,
            Self::Failed => 3,
            Self::NotVerified => 4,
        }
    }
}

/// One check with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the check.
    pub name: CheckName,
    /// Index in [`StatementVerdict::receipts`] of the receipt that was checked; `None` for a check of the statement.
    pub receipt: Option<usize>,
    /// Result of the check.
    pub state: CheckState,
    /// Reason why the check failed or was not done; `None` if it passed.
    pub code: Option<Code>,
    /// Compared values, for people.
    pub detail: String,
}

impl Check {
    pub(crate) fn ok(name: CheckName, detail: impl Into<String>) -> Self {
        Self { name, receipt: None, state: CheckState::Ok, code: None, detail: detail.into() }
    }

    pub(crate) fn failed(name: CheckName, code: Code, detail: impl Into<String>) -> Self {
        Self { name, receipt: None, state: CheckState::Failed, code: Some(code), detail: detail.into() }
    }

    pub(crate) fn not_done(name: CheckName, code: Code, detail: impl Into<String>) -> Self {
        Self { name, receipt: None, state: CheckState::NotDone, code: Some(code), detail: detail.into() }
    }

    pub(crate) fn not_reached(name: CheckName) -> Self {
        Self::not_done(name, Code::NotReached, "an earlier check did not pass")
    }

    /// Adds [`Code::NotReached`] for those of `names` that `checks` does not have.
    pub(crate) fn add_not_reached(checks: &mut Vec<Self>, names: &[CheckName]) {
        for name in names {
            if !checks.iter().any(|check| check.name == *name) {
                checks.push(Self::not_reached(*name));
            }
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// The check was done and passed.
    Ok,
    /// The check was done and failed.
    Failed,
    /// The check was not done; [`Check::code`] gives the reason.
    NotDone,
}

macro_rules! words {
    ($(#[$of:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All variants, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the stable name, as it is serialized.
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
    /// Names of the checks, in the order in which they are listed.
    CheckName {
        /// The statement is a well-formed COSE_Sign1 (RFC 9943).
        Statement = "statement",
        /// The protected header has the labels that RFC 9943, section 6, requires.
        Headers = "headers",
        /// A trusted key of the issuer signed the statement.
        IssuerSignature = "issuer-signature",
        /// The statement's `exp` and `nbf` claims allow its use.
        StatementDates = "statement-dates",
        /// The given payload is the signed one.
        Payload = "payload",
        /// Header and content keep the rules of the content type. Not checked by this crate, which reads no payloads.
        ContentRules = "content-rules",
        /// The gateway's keys made the signatures within an execution receipt (AgentROA). Not checked by this crate, which
        /// reads no payloads.
        InnerSignatures = "inner-signatures",
        /// The verification that a receipt (VRF) states is not older than the relying party allows. Not checked by this
        /// crate, which reads no payloads.
        Age = "age",
        /// The unprotected trace-metadata of a conversation record (label 100) repeats the values of the record. Not
        /// checked by this crate, which reads no payloads.
        TraceMetadata = "trace-metadata",
        /// The receipt is well-formed (RFC 9942) and comes from a trusted log.
        Receipt = "receipt",
        /// The statement's leaf leads to the root that the log signed.
        Inclusion = "inclusion",
        /// A trusted key of the log signed the root.
        ReceiptSignature = "receipt-signature",
        /// The receipt's `exp`, `nbf` and `iat` claims allow its use.
        ReceiptDates = "receipt-dates",
        /// The known tree is the beginning of the newer one.
        Consistency = "consistency",
        /// The checkpoint is signed by the log, and its tree contains the statement.
        Checkpoint = "checkpoint",
        /// Witnesses have cosigned the tree, as the policy's quorum requires.
        Witnesses = "witnesses",
        /// The statement is a head of the log's index, and its form is right.
        IndexHead = "index-head",
        /// The policy that admitted the entry is in the bundle. Not checked by this crate, which reads no bundles.
        Policy = "policy",
        /// All entries that the bundle lists of a search are in it. Not checked by this crate.
        Selection = "selection",
        /// The log has no other entry that such a search should have named. Checked for a [`SearchProof`](crate::index::SearchProof);
        /// a bundle has none.
        Completeness = "completeness",
        /// Monitors have computed the head of the index from the statements of the log.
        Recomputation = "recomputation",
    }
}

impl CheckName {
    /// Returns the name with spaces instead of hyphens, for a list on a terminal.
    pub fn label(self) -> String {
        self.as_str().replace('-', " ")
    }
}

words! {
    /// Reasons why a check failed or was not done.
    Code {
        /// The statement cannot be parsed.
        MalformedStatement = "malformed-statement",
        /// The statement lacks a required protected label.
        MissingHeader = "missing-header",
        /// The trust store has no anchor for this issuer.
        UnknownIssuer = "unknown-issuer",
        /// The issuer is trusted, but not with the key that the statement names.
        UnknownIssuerKey = "unknown-issuer-key",
        /// The issuer's signature does not verify.
        IssuerSignatureInvalid = "issuer-signature-invalid",
        /// The certificate chain does not verify.
        CertificatePathInvalid = "certificate-path-invalid",
        /// The statement names a certificate by hash and does not contain it.
        CertificateMissing = "certificate-missing",
        /// The certificate does not name the statement's issuer.
        IssuerNotBound = "issuer-not-bound",
        /// The statement had expired (`exp`).
        StatementExpired = "statement-expired",
        /// The statement was not valid yet (`nbf`).
        StatementNotYetValid = "statement-not-yet-valid",
        /// The statement or its certificate ended before the earliest time of the receipts. It may have been registered
        /// before that end.
        RegistrationTimeUnknown = "registration-time-unknown",
        /// The payload is detached and was not given.
        PayloadMissing = "payload-missing",
        /// No payload was given for comparison.
        PayloadNotGiven = "payload-not-given",
        /// The given payload is not the signed one.
        PayloadDigestMismatch = "payload-digest-mismatch",
        /// The hash algorithm of the hash envelope is not supported.
        UnsupportedHash = "unsupported-hash",
        /// The statement breaks a rule of its content type.
        ContentRuleBroken = "content-rule-broken",
        /// The content was not shown, so that its rules could not be checked.
        ContentMissing = "content-missing",
        /// No key of the gateway made a signature within the execution receipt.
        InnerSignatureInvalid = "inner-signature-invalid",
        /// No key of the gateway is known, so that the signatures within its receipt were not verified.
        NoGatewayKey = "no-gateway-key",
        /// The verification is older than the maximum age.
        TooOld = "too-old",
        /// The time of the verification is not known: the statement is not a VRF receipt, or is not disclosed.
        AgeUnknown = "age-unknown",
        /// The unsigned trace-metadata contradicts the signed record.
        TraceMetadataMismatch = "trace-metadata-mismatch",
        /// The trace-metadata could not be compared with a record.
        TraceMetadataNotCompared = "trace-metadata-not-compared",
        /// The statement has no receipt.
        NoReceipt = "no-receipt",
        /// The receipt cannot be parsed, or there are more than [`MAX_RECEIPTS`](crate::MAX_RECEIPTS).
        MalformedReceipt = "malformed-receipt",
        /// The receipt's verifiable data structure is neither RFC9162_SHA256 nor CCF_LEDGER_SHA256.
        UnsupportedStructure = "unsupported-structure",
        /// The receipt lacks a label that the log's [`HeaderProfile`](crate::HeaderProfile) requires.
        ReceiptIncomplete = "receipt-incomplete",
        /// The receipt is for another log of the same issuer (`sub`).
        ReceiptSubjectMismatch = "receipt-subject-mismatch",
        /// No trusted log has the receipt's issuer.
        UnknownLog = "unknown-log",
        /// The log is trusted, but not with the key that the receipt names.
        UnknownLogKey = "unknown-log-key",
        /// The signing key was replaced at or before this tree size.
        LogKeyRetired = "log-key-retired",
        /// The signing key was compromised at or before this tree size.
        LogKeyCompromised = "log-key-compromised",
        /// The proof fits no tree.
        ReceiptProofInvalid = "receipt-proof-invalid",
        /// The proof does not lead from this statement to the root that the log signed.
        ReceiptRootMismatch = "receipt-root-mismatch",
        /// The log's signature over the root does not verify.
        ReceiptSignatureInvalid = "receipt-signature-invalid",
        /// The receipt has expired (`exp`).
        ReceiptExpired = "receipt-expired",
        /// The receipt's `nbf` or `iat` is in the future.
        ReceiptNotYetValid = "receipt-not-yet-valid",
        /// The trust store is empty.
        NoTrustAnchors = "no-trust-anchors",
        /// The trust store leaves this check to the log.
        LeftToLog = "left-to-log",
        /// No witness is configured.
        NoWitness = "no-witness",
        /// Witnesses are required, but no checkpoint was given.
        NoCheckpoint = "no-checkpoint",
        /// The checkpoint cannot be parsed.
        MalformedCheckpoint = "malformed-checkpoint",
        /// No trusted checkpoint key of this log signed the checkpoint.
        UnknownCheckpointKey = "unknown-checkpoint-key",
        /// The log's signature on its checkpoint does not verify.
        CheckpointSignatureInvalid = "checkpoint-signature-invalid",
        /// No verified receipt has the same tree as the checkpoint.
        CheckpointOtherTree = "checkpoint-other-tree",
        /// Receipt and checkpoint have different roots for one tree size.
        CheckpointRootMismatch = "checkpoint-root-mismatch",
        /// The tlog-proof cannot be parsed.
        MalformedTlogProof = "malformed-tlog-proof",
        /// The tlog-proof does not lead from this statement to its checkpoint.
        TlogProofMismatch = "tlog-proof-mismatch",
        /// Fewer witnesses have cosigned than the policy's quorum requires.
        QuorumNotMet = "quorum-not-met",
        /// The receipt has no consistency proof.
        NoConsistencyProof = "no-consistency-proof",
        /// The consistency proof starts from another size than the known tree's.
        ConsistencyOtherSize = "consistency-other-size",
        /// The consistency proof does not lead from the known tree to the signed one.
        ConsistencyMismatch = "consistency-mismatch",
        /// The bundle lacks the policy that admitted the entry, or has something else in its place.
        PolicyMissing = "policy-missing",
        /// The policy was registered after the entry that it should have admitted.
        PolicyTooLate = "policy-too-late",
        /// The bundle lacks an entry that it lists.
        EntryMissing = "entry-missing",
        /// Nothing proves that the bundle lists every entry.
        IndexNotProven = "index-not-proven",
        /// The payload of the index head cannot be read.
        MalformedIndexHead = "malformed-index-head",
        /// The statement is not a head of this log's index, or indexes more leaves than there were.
        IndexHeadMismatch = "index-head-mismatch",
        /// The search covers leaves that the head does not index.
        IndexBeyondHead = "index-beyond-head",
        /// The runs of the index head are not those that its size requires.
        IndexRunsWrong = "index-runs-wrong",
        /// A run proof is missing, malformed or refused.
        IndexProofInvalid = "index-proof-invalid",
        /// An entry lacks a term that the log's index gives it.
        IndexContradicted = "index-contradicted",
        /// The file has an entry that is not part of the answer.
        EntryUnneeded = "entry-unneeded",
        /// No monitor is trusted that computes the index: its head is the claim of the log.
        NoMonitor = "no-monitor",
        /// An attestation of an index head cannot be read.
        MalformedAttestation = "malformed-attestation",
        /// The signature of a trusted monitor on its attestation does not verify.
        AttestationInvalid = "attestation-invalid",
        /// Fewer monitors have attested the index head than are required.
        NotAttested = "not-attested",
        /// The bundle has no entry.
        EmptyBundle = "empty-bundle",
        /// An earlier check failed or was not done.
        NotReached = "not-reached",
    }
}

/// Contents of a statement. They are proven only if the verdict is [`VerificationOutcome::Verified`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementFacts {
    /// Entry ID: SHA-256 of the statement.
    #[serde(serialize_with = "as_text")]
    pub entry: EntryDigest,
    /// Issuer (`iss`).
    pub iss: Option<String>,
    /// Subject (`sub`).
    pub sub: Option<String>,
    /// Content type; for a hash envelope, that of the preimage.
    pub content_type: Option<String>,
    /// Name of the signature algorithm.
    pub algorithm: Option<&'static str>,
}

/// Contents of a receipt. They are proven only if `verified` is `true`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReceiptFacts {
    /// `true` if all checks of this receipt passed.
    pub verified: bool,
    /// Name of the log in the trust store; for an unknown log, the receipt's `iss`.
    pub log: Option<String>,
    /// Key identifier of the log's key (`kid`), in unpadded base64url.
    pub kid: Option<String>,
    /// Name of the signature algorithm.
    pub algorithm: Option<&'static str>,
    /// Name of the verifiable data structure, such as `RFC9162_SHA256`.
    pub structure: Option<&'static str>,
    /// Position of the statement in the log; `None` for CCF ledgers.
    pub position: Option<LeafPosition>,
    /// Transaction of a CCF ledger that signed the root (`txid`).
    pub transaction: Option<String>,
    /// Root that the proof leads to, in hexadecimal.
    pub root: Option<String>,
    /// Time of the signature according to the log (`iat`), in Unix seconds.
    pub iat: Option<i64>,
}

/// Position of a leaf in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LeafPosition {
    /// Index of the leaf.
    #[serde(serialize_with = "index")]
    pub leaf_index: LeafIndex,
    /// Size of the tree whose root is signed.
    #[serde(serialize_with = "size")]
    pub tree_size: TreeSize,
    /// `true` if the log signed the tree size, which also fixes the index. RFC 9942 signs neither of them.
    pub signed: bool,
}

impl fmt::Display for LeafPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hearsay = if self.signed { "" } else { " (position not signed)" };
        write!(f, "leaf {} of {}{hearsay}", self.leaf_index.get(), self.tree_size.get())
    }
}

/// Contents of a checkpoint. They are proven only if the verdict is [`VerificationOutcome::Verified`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointFacts {
    /// Origin of the log.
    pub origin: String,
    /// Tree size.
    pub tree_size: u64,
    /// Root hash in hexadecimal.
    pub root: String,
    /// Valid cosignatures of the policy's witnesses.
    pub cosigned: Vec<WitnessCosignature>,
}

/// A valid cosignature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WitnessCosignature {
    /// Name of the witness in the policy.
    pub witness: String,
    /// Time of the cosignature in Unix seconds.
    pub at: u64,
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
