//! The request: evidence, and what the reader trusts.

use bundle::starts_like_a_bundle;
use data_encoding::BASE64URL_NOPAD;
use scitt::PublicKey;
use scitt::key::read_key;
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

/// Evidence with everything that its verification depends on.
#[derive(Debug)]
pub struct VerificationRequest {
    pub(crate) evidence: Vec<u8>,
    pub(crate) receipts: Vec<Vec<u8>>,
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) gateway_keys: Vec<PublicKey>,
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
    /// A byte string of the request cannot be decoded.
    #[error("the request cannot be read: {0}")]
    Request(String),
    /// The trust file has mistakes.
    #[error("the trust file cannot be used: {0}")]
    Trust(String),
    /// The witness policy has mistakes.
    #[error("the witness policy cannot be used: {0}")]
    WitnessPolicy(String),
    /// A key of the gateway cannot be read.
    #[error("a key of the gateway cannot be used: {0}")]
    GatewayKey(String),
    /// The evidence is of no known kind.
    #[error("this is not an evidence bundle, a statement or a checkpoint")]
    NoEvidence,
    /// A part of the request is for statements only, and the evidence is something else.
    #[error(
        "receipts, a payload and gateway_keys are for a statement, and this is {0}: verify the statement on its own"
    )]
    NotForThis(&'static str),
    /// The bundle was changed or truncated, or is of another version.
    #[error("this is not an evidence bundle of this version: {0}")]
    Bundle(String),
}

impl RefusedRequest {
    /// Returns the stable code, which is that of the command line where there is one.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Request(_) => "malformed-request",
            Self::Trust(_) => "trust-unusable",
            Self::WitnessPolicy(_) => "witness-policy-unusable",
            Self::GatewayKey(_) => "key-unusable",
            Self::NoEvidence => "no-evidence",
            Self::NotForThis(_) => "usage",
            Self::Bundle(_) => "malformed-bundle",
        }
    }
}

/// The request as JSON. Byte strings are unpadded base64url.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestText {
    /// The evidence: a bundle, a statement or a checkpoint.
    pub evidence: String,
    /// Receipts in addition to those attached to a statement.
    #[serde(default)]
    pub receipts: Vec<String>,
    /// The payload of a statement, or the preimage of its hash.
    pub payload: Option<String>,
    /// Keys of the gateway that signed within an execution receipt: each a PEM, DID, JWK or COSE_Key. Without any, the key in
    /// the issuer's did:key is used.
    #[serde(default)]
    pub gateway_keys: Vec<String>,
    /// A `trust.toml`.
    pub trust: String,
    /// A C2SP tlog-policy.
    pub witness_policy: Option<String>,
    /// Current time in Unix seconds.
    pub now: u64,
}

impl VerificationRequest {
    /// Decodes the parts of a request.
    ///
    /// # Errors
    /// Returns a [`RefusedRequest`] if a part, the trust file or the witness policy cannot be read.
    pub fn read(text: &RequestText) -> Result<Self, RefusedRequest> {
        let policy = text.witness_policy.as_deref().map(str::parse).transpose();
        Ok(Self {
            evidence: decoded("evidence", &text.evidence)?,
            receipts: text
                .receipts
                .iter()
                .map(|receipt| decoded("receipts", receipt))
                .collect::<Result<_, _>>()?,
            payload: text.payload.as_deref().map(|payload| decoded("payload", payload)).transpose()?,
            gateway_keys: text.gateway_keys.iter().map(|key| gateway_key(key)).collect::<Result<_, _>>()?,
            trust: TrustStore::from_toml(&text.trust)
                .map_err(|error| RefusedRequest::Trust(error.to_string()))?,
            witness_policy: policy.map_err(|error: tlog::policy::NotAPolicy| {
                RefusedRequest::WitnessPolicy(error.to_string())
            })?,
            now: text.now,
        })
    }

    /// Refuses parts that would be ignored, for evidence of a kind that is not a statement.
    pub(crate) fn refuse_parts_of_statements(&self, kind: &'static str) -> Result<(), RefusedRequest> {
        match self.receipts.is_empty() && self.payload.is_none() && self.gateway_keys.is_empty() {
            true => Ok(()),
            false => Err(RefusedRequest::NotForThis(kind)),
        }
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

fn gateway_key(text: &str) -> Result<PublicKey, RefusedRequest> {
    read_key(text).map(|key| key.key).map_err(|error| RefusedRequest::GatewayKey(error.to_string()))
}

fn decoded(member: &str, text: &str) -> Result<Vec<u8>, RefusedRequest> {
    BASE64URL_NOPAD
        .decode(text.as_bytes())
        .map_err(|error| RefusedRequest::Request(format!("{member} is not unpadded base64url: {error}")))
}
