//! The request: evidence, and what the reader trusts.

use bundle::starts_like_a_bundle;
use data_encoding::BASE64URL_NOPAD;
use jose::json::{self, Limits};
use serde::Deserialize;
use thiserror::Error;
use tlog::policy::WitnessPolicy;
use verifier::TrustStore;

/// Maximum size of a request in bytes: a bundle of the maximum size in base64url, with room for trust and policy.
pub const MAX_REQUEST_BYTES: usize = 96 << 20;
/// The first bytes of a tagged COSE_Sign1: tag 18, array of four.
const TAGGED_SIGN1: &[u8] = &[0xd2, 0x84];
/// The separator before the signatures of a signed note (C2SP signed-note).
const NOTE_SIGNATURE: &[u8] = "\n\n\u{2014} ".as_bytes();
/// Maximum nesting of a request.
const DEPTH: usize = 4;

/// Evidence with everything that its verification depends on.
#[derive(Debug)]
pub struct VerificationRequest {
    pub(crate) evidence: Vec<u8>,
    pub(crate) receipts: Vec<Vec<u8>>,
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) trust: TrustStore,
    pub(crate) witness_policy: Option<WitnessPolicy>,
    /// Current time in Unix seconds.
    pub(crate) now: u64,
}

/// The kind of the evidence, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvidenceKind {
    Bundle,
    Statement,
    Checkpoint,
}

/// Error of a request that leads to no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RefusedRequest {
    /// The request is not the JSON object that it should be.
    #[error("the request cannot be read: {0}")]
    Request(String),
    /// The trust file has mistakes.
    #[error("the trust file cannot be used: {0}")]
    Trust(String),
    /// The witness policy has mistakes.
    #[error("the witness policy cannot be used: {0}")]
    WitnessPolicy(String),
    /// The evidence is of no known kind.
    #[error("this is no evidence bundle, no statement and no checkpoint")]
    NoEvidence,
    /// The bundle was changed or truncated, or is of another version.
    #[error("this is no evidence bundle of this version: {0}")]
    Bundle(String),
}

impl RefusedRequest {
    /// Returns the stable code, which is that of the command line where there is one.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Request(_) => "malformed-request",
            Self::Trust(_) => "trust-unusable",
            Self::WitnessPolicy(_) => "witness-policy-unusable",
            Self::NoEvidence => "no-evidence",
            Self::Bundle(_) => "malformed-bundle",
        }
    }
}

/// The request as JSON. Byte strings are unpadded base64url.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestText {
    evidence: String,
    #[serde(default)]
    receipts: Vec<String>,
    payload: Option<String>,
    /// A `trust.toml`.
    trust: String,
    /// A C2SP tlog-policy.
    witness_policy: Option<String>,
    now: u64,
}

impl VerificationRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// Returns a [`RefusedRequest`] if the request, its trust file or its witness policy cannot be read.
    pub fn parse(bytes: &[u8]) -> Result<Self, RefusedRequest> {
        let limits = Limits { bytes: MAX_REQUEST_BYTES, depth: DEPTH };
        let text: RequestText =
            json::read_strict(bytes, limits).map_err(|error| RefusedRequest::Request(error.to_string()))?;
        let policy = text.witness_policy.as_deref().map(str::parse).transpose();
        Ok(Self {
            evidence: decoded("evidence", &text.evidence)?,
            receipts: text
                .receipts
                .iter()
                .map(|receipt| decoded("receipts", receipt))
                .collect::<Result<_, _>>()?,
            payload: text.payload.as_deref().map(|payload| decoded("payload", payload)).transpose()?,
            trust: TrustStore::from_toml(&text.trust)
                .map_err(|error| RefusedRequest::Trust(error.to_string()))?,
            witness_policy: policy.map_err(|error: tlog::policy::NotAPolicy| {
                RefusedRequest::WitnessPolicy(error.to_string())
            })?,
            now: text.now,
        })
    }

    /// Returns the kind of the evidence.
    pub(crate) fn evidence_kind(&self) -> Result<EvidenceKind, RefusedRequest> {
        let evidence = &self.evidence;
        match () {
            () if starts_like_a_bundle(evidence) => Ok(EvidenceKind::Bundle),
            () if evidence.starts_with(TAGGED_SIGN1) => Ok(EvidenceKind::Statement),
            () if evidence.windows(NOTE_SIGNATURE.len()).any(|at| at == NOTE_SIGNATURE) => {
                Ok(EvidenceKind::Checkpoint)
            }
            () => Err(RefusedRequest::NoEvidence),
        }
    }
}

fn decoded(member: &str, text: &str) -> Result<Vec<u8>, RefusedRequest> {
    BASE64URL_NOPAD
        .decode(text.as_bytes())
        .map_err(|error| RefusedRequest::Request(format!("{member} is no unpadded base64url: {error}")))
}
