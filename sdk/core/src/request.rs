//! The request: an operation with its arguments.

use browser_verifier::{EvidenceVerdict, RequestText, VerificationRequest};
use jose::json::{self, Limits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::CheckContent;
use crate::error::CoreError;
use crate::keys::{GenerateKey, PublicKeyOf, ReadKey};
use crate::limits::{MAX_REQUEST_BYTES, REQUEST_DEPTH};
use crate::notes::{ReadCheckpoint, ReadCosignature, ReadVerifierKey, VerifyNote};
use crate::policies::{CheckPolicy, TryPolicy};
use crate::receipts::{ReadProblem, ReceiptRoot, VerifyConsistency};
use crate::searches::{ReadTerms, VerifySearch};
use crate::statements::{AttachReceipts, ReadStatement, SignStatement, StripReceipts, VerifySignature};
use crate::trees::{TreeRoot, VerifyGrowth, VerifyInclusion};
use crate::vap_messages::{CheckObject, DigestJson, MatchPattern, ReadMessage, SignMessage, VerifyVerdict};

/// A request. In JSON, `operation` is the name of the variant in kebab-case, and the arguments are members beside it.
#[derive(Debug, Deserialize)]
#[serde(tag = "operation", rename_all = "kebab-case")]
pub enum CoreRequest {
    /// Generates a signing key.
    GenerateKey(GenerateKey),
    /// Returns the public key of a signing key.
    PublicKey(PublicKeyOf),
    /// Reads a public key in any form.
    ReadKey(ReadKey),
    /// Signs a statement.
    SignStatement(SignStatement),
    /// Reads a statement.
    ReadStatement(ReadStatement),
    /// Verifies the signature of a statement by one key.
    VerifySignature(VerifySignature),
    /// Attaches receipts to a statement.
    Attach(AttachReceipts),
    /// Removes the receipts from a statement.
    Strip(StripReceipts),
    /// Verifies a bundle, a statement or a checkpoint offline, as [`VerificationRequest`] describes it.
    Verify(RequestText),
    /// Checks a statement against the rules of its content type.
    CheckContent(CheckContent),
    /// Reads a registration policy, and lists its mistakes.
    CheckPolicy(CheckPolicy),
    /// Decides about a statement under a registration policy.
    TryPolicy(TryPolicy),
    /// Reads the terms under which a log's index has an entry.
    ReadTerms(ReadTerms),
    /// Verifies that the answer of a search is complete.
    VerifySearch(VerifySearch),
    /// Verifies that a known tree is the beginning of the one that a receipt signs.
    VerifyConsistency(VerifyConsistency),
    /// Verifies one receipt by one key, and returns its root.
    ReceiptRoot(ReceiptRoot),
    /// Reads concise problem details (RFC 9290), the error of a transparency service.
    ReadProblem(ReadProblem),
    /// Verifies a Merkle inclusion proof.
    InclusionProof(VerifyInclusion),
    /// Verifies a Merkle consistency proof.
    ConsistencyProof(VerifyGrowth),
    /// Computes the root of a tree.
    TreeRoot(TreeRoot),
    /// Verifies a signed note by known keys.
    VerifyNote(VerifyNote),
    /// Reads the text of a checkpoint. Nothing is verified.
    ReadCheckpoint(ReadCheckpoint),
    /// Verifies the cosignature of a witness and returns its time.
    ReadCosignature(ReadCosignature),
    /// Reads a verifier key of a signed note.
    ReadVerifierKey(ReadVerifierKey),
    /// Checks and signs a VAP message.
    SignMessage(SignMessage),
    /// Reads a VAP message as a gateway does.
    ReadMessage(ReadMessage),
    /// Verifies the signature of a Verdict.
    VerifyVerdict(VerifyVerdict),
    /// Checks the form of a VAP object in a statement.
    CheckObject(CheckObject),
    /// Computes the digest of a JSON text.
    DigestJson(DigestJson),
    /// Matches a tool's name with patterns.
    MatchPattern(MatchPattern),
}

/// An answer in JSON: `result`, or `error` with the members of a [`CoreError`].
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum CoreAnswer {
    Result(Value),
    Error(CoreError),
}

/// Answers a request: JSON with the member `result`, or `error` with `code`, `what` and possibly `offset`. Texts in the
/// answer quote the request.
pub fn answer(request: &[u8]) -> Vec<u8> {
    let answered = CoreRequest::parse(request).and_then(CoreRequest::perform);
    let answer = answered.map_or_else(CoreAnswer::Error, CoreAnswer::Result);
    // Serialization cannot fail: answers consist of text, numbers, booleans, and structures of them.
    serde_json::to_vec(&answer).unwrap_or_default()
}

impl CoreRequest {
    /// Parses a request. Duplicate members are refused.
    ///
    /// # Errors
    /// A [`CoreError`] with the code `malformed-request`.
    pub fn parse(bytes: &[u8]) -> Result<Self, CoreError> {
        let limits = Limits { bytes: MAX_REQUEST_BYTES, depth: REQUEST_DEPTH };
        json::read_strict(bytes, limits).map_err(|error| {
            CoreError::new("malformed-request", format!("the request cannot be read: {error}"))
        })
    }

    fn perform(self) -> Result<Value, CoreError> {
        match self {
            Self::GenerateKey(request) => request.generate(),
            Self::PublicKey(request) => request.describe(),
            Self::ReadKey(request) => request.read(),
            Self::SignStatement(request) => request.sign(),
            Self::ReadStatement(request) => request.read(),
            Self::VerifySignature(request) => request.verify(),
            Self::Attach(request) => request.attach(),
            Self::Strip(request) => request.strip(),
            Self::Verify(text) => verify(&text),
            Self::CheckContent(request) => request.check(),
            Self::CheckPolicy(request) => request.check(),
            Self::TryPolicy(request) => request.attempt(),
            Self::ReadTerms(request) => request.read(),
            Self::VerifySearch(request) => request.verify(),
            Self::VerifyConsistency(request) => request.verify(),
            Self::ReceiptRoot(request) => request.verify(),
            Self::ReadProblem(request) => request.read(),
            Self::InclusionProof(request) => request.verify(),
            Self::ConsistencyProof(request) => request.verify(),
            Self::TreeRoot(request) => request.compute(),
            Self::VerifyNote(request) => request.verify(),
            Self::ReadCheckpoint(request) => request.read(),
            Self::ReadCosignature(request) => request.read(),
            Self::ReadVerifierKey(request) => request.read(),
            Self::SignMessage(request) => request.sign(),
            Self::ReadMessage(request) => request.read(),
            Self::VerifyVerdict(request) => request.verify(),
            Self::CheckObject(request) => request.check(),
            Self::DigestJson(request) => request.compute(),
            Self::MatchPattern(request) => request.matches(),
        }
    }
}

fn verify(text: &RequestText) -> Result<Value, CoreError> {
    let answer = EvidenceVerdict::of(&VerificationRequest::read(text)?)?;
    serde_json::to_value(answer).map_err(|error| CoreError::new("malformed-request", error))
}
