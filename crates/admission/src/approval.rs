//! Approvals: a question to a person outside of the client, and the answer that this person signs.
//!
//! A [`Question`] is about one [`Subject`]: a call with its exact arguments, a commitment or an amendment. The answer
//! is a compact JWS over an [`Approval`], which contains the question's id, the digest of its subject, the decision and
//! an expiry. It is valid only for that subject: other arguments, another session or another route give another digest.
//! The set of accepted keys is the one at the time when the call is decided, not when the answer arrived.
//!
//! Not here: the storage of questions and the guarantee that each is answered once, and the delivery to approvers (both
//! in the gateway).

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use jiff::Timestamp;
use jose::jcs;
use jose::jwk::Curve;
use jose::jws::{self, Jws};
use scitt::{PublicKey, Signer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::limits::{MAX_APPROVAL, MAX_APPROVAL_REASON, MAX_APPROVER};
use vap::digest::Digest;

/// The `typ` header of a signed [`Approval`].
const APPROVAL_TYPE: &str = "vap-approval";
/// The `typ` header of a signed [`ReaderProof`].
const READER_TYPE: &str = "vap-approver";
/// Bytes of a question's id, before hexadecimal encoding.
const ID_BYTES: usize = 16;
/// Maximum difference between [`ReaderProof::at`] and the current time, in seconds.
const READER_WINDOW: u64 = 60;

/// The type of a question's subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SubjectKind {
    /// A tool call.
    Call,
    /// A Scope Commitment.
    Commitment,
    /// A Scope Amendment.
    Amendment,
}

/// The subject of a question, with all members that an approval is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The type of the subject.
    pub kind: SubjectKind,
    /// The gateway's name.
    pub gateway: String,
    /// The name of the route.
    pub route: String,
    /// The session's id, or `none`.
    pub session_id: String,
    /// The digest that identifies the principal; empty if the caller is unknown.
    pub principal: String,
    /// The digest of the effective commitment in force; `None` for a commitment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub commitment: Option<Digest>,
    /// The tool's name, for a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The canonical text of the arguments, or of the message without its signature.
    pub content: String,
}

impl Subject {
    /// Returns the digest of the canonical form, which the approver signs.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&jcs::canonical(&json!(self)))
    }

    /// Returns the name that approvers' patterns are matched with: the tool of a call, or `commitment` or `amendment`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.kind {
            SubjectKind::Call => self.tool.as_deref().unwrap_or_default(),
            SubjectKind::Commitment => "commitment",
            SubjectKind::Amendment => "amendment",
        }
    }
}

/// A question that waits for an approver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question's id: 32 hexadecimal digits.
    pub id: String,
    /// The subject of the question.
    pub subject: Subject,
    /// The agent's name, from its commitment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The evidence for that name, as in [`ProvenBy::as_str`](crate::principal::ProvenBy::as_str).
    pub agent_proven_by: String,
    /// The cause of the question: the code of a rule, or of the setting that requires an approval.
    pub because: String,
    /// The time of the question in Unix seconds.
    pub asked: i64,
    /// The expiry of the question in Unix seconds.
    pub expires: i64,
}

impl Question {
    /// Returns `true` if the question has expired.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        now.as_second() >= self.expires
    }
}

/// Derives a question's id from random bytes.
#[must_use]
pub fn id_of(secret: &[u8; 32]) -> String {
    HEXLOWER.encode(&secret[..ID_BYTES])
}

/// Derives the id of a question about a message from its subject, so that a repeated message gets the same question.
#[must_use]
pub fn id_of_subject(subject: &Subject) -> String {
    let digest = subject.digest();
    let hex = digest.as_str().rsplit(':').next().unwrap_or_default();
    hex.chars().take(2 * ID_BYTES).collect()
}

/// Returns `true` if the text has the form of a question's id.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == 2 * ID_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The decision of an approver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The message or the call may go on.
    Approve,
    /// The message or the call is denied.
    Deny,
}

impl Decision {
    /// Returns the name used in the signed JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Decision::Approve => "approve",
            Decision::Deny => "deny",
        }
    }
}

/// The payload of a signed answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The id of the question.
    pub question: String,
    /// The digest of the question's [`Subject`].
    pub digest: Digest,
    /// The approver's decision.
    pub decision: Decision,
    /// The expiry of the answer in Unix seconds.
    pub expires: i64,
    /// The approver's name in the gateway's configuration.
    pub approver: String,
    /// The approver's reason, kept as evidence only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The reason why a text is not a valid answer to a question, or not a valid [`ReaderProof`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// The text does not have the required form.
    #[error("not a signed approval: {0}")]
    Form(String),
    /// The key belongs to no approver with the right to answer this question now.
    #[error("no approver with the key {0} may answer this question")]
    Key(String),
    /// The signature does not verify.
    #[error("the signature does not verify")]
    Signature,
    /// The answer names another approver than the key's holder.
    #[error("the key belongs to another approver than it names")]
    Approver,
    /// The answer is for another question.
    #[error("the answer is for another question")]
    Question,
    /// The answer's digest is not that of the question's subject.
    #[error("its digest is not that of the question's subject")]
    Digest,
    /// The answer has expired or is valid longer than the question, or a reader's proof is too old.
    #[error("it has expired, or is valid longer than the question")]
    Expired,
    /// The signing key is neither Ed25519 nor P-256.
    #[error("approvals are signed with Ed25519 or P-256")]
    Curve,
    /// The signer failed.
    #[error("the approval cannot be signed: {0}")]
    Unsigned(String),
}

/// A signed [`Approval`] of valid form. Its signature is not verified yet.
#[derive(Clone, Debug)]
pub struct SignedApproval {
    approval: Approval,
    jws: Jws,
    digest: Digest,
}

impl SignedApproval {
    /// Parses a compact JWS over an [`Approval`].
    ///
    /// # Errors
    /// [`ApprovalError::Form`].
    pub fn parse(text: &str) -> Result<Self, ApprovalError> {
        let (approval, jws) = open::<Approval>(text, APPROVAL_TYPE)?;
        let long = |text: &str, most: usize| text.chars().nth(most).is_some();
        if long(&approval.approver, MAX_APPROVER)
            || approval.reason.as_deref().is_some_and(|reason| long(reason, MAX_APPROVAL_REASON))
        {
            return Err(ApprovalError::Form("a text in it is too long".to_owned()));
        }
        Ok(Self { approval, jws, digest: Digest::of(text.as_bytes()) })
    }

    /// Returns the payload.
    #[must_use]
    pub fn approval(&self) -> &Approval {
        &self.approval
    }

    /// Returns the `kid` of the signing key.
    #[must_use]
    pub fn kid(&self) -> &str {
        self.jws.kid()
    }

    /// Returns the digest of the signed text, for the record on the log.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Verifies the signature under this key.
    ///
    /// # Errors
    /// [`ApprovalError::Signature`].
    pub fn check_signature(&self, key: &PublicKey) -> Result<(), ApprovalError> {
        key.verify_jws(&self.jws).map_err(|_| ApprovalError::Signature)
    }

    /// Checks that the answer is for this question and valid at this time.
    ///
    /// # Errors
    /// [`ApprovalError::Question`], [`ApprovalError::Digest`] or [`ApprovalError::Expired`].
    pub fn check_answers(&self, question: &Question, now: Timestamp) -> Result<(), ApprovalError> {
        let Approval { question: id, digest, expires, .. } = &self.approval;
        if *id != question.id {
            return Err(ApprovalError::Question);
        }
        if *digest != question.subject.digest() {
            return Err(ApprovalError::Digest);
        }
        match now.as_second() < *expires && *expires <= question.expires {
            true => Ok(()),
            false => Err(ApprovalError::Expired),
        }
    }
}

impl Approval {
    /// Creates the answer to a question, with the question's expiry.
    #[must_use]
    pub fn of(question: &Question, approver: &str, decision: Decision, reason: Option<String>) -> Self {
        Self {
            question: question.id.clone(),
            digest: question.subject.digest(),
            decision,
            expires: question.expires,
            approver: approver.to_owned(),
            reason,
        }
    }

    /// Signs the answer and returns a compact JWS.
    ///
    /// # Errors
    /// [`ApprovalError::Curve`] if the key is on another curve, [`ApprovalError::Unsigned`] if the signer fails.
    pub fn sign(&self, signer: &dyn Signer) -> Result<String, ApprovalError> {
        signed(signer, APPROVAL_TYPE, &jcs::canonical(&json!(self)))
    }
}

/// The proof with which an approver authenticates to read questions: signed for one gateway, valid for a minute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReaderProof {
    /// The origin of the gateway's listener.
    pub origin: String,
    /// The signing time in Unix seconds.
    pub at: u64,
}

impl ReaderProof {
    /// Signs the proof and returns a compact JWS.
    ///
    /// # Errors
    /// [`ApprovalError::Curve`] if the key is on another curve, [`ApprovalError::Unsigned`] if the signer fails.
    pub fn sign(&self, signer: &dyn Signer) -> Result<String, ApprovalError> {
        signed(signer, READER_TYPE, &jcs::canonical(&json!(self)))
    }
}

/// A signed [`ReaderProof`] of valid form and recent time. Its signature is not verified yet.
#[derive(Clone, Debug)]
pub struct SignedReaderProof {
    reader: ReaderProof,
    jws: Jws,
}

impl SignedReaderProof {
    /// Parses a compact JWS over a [`ReaderProof`].
    ///
    /// # Errors
    /// [`ApprovalError::Form`], or [`ApprovalError::Expired`] if its time is more than a minute from `now`.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, ApprovalError> {
        let (reader, jws) = open::<ReaderProof>(text, READER_TYPE)?;
        let off = i64::try_from(reader.at).map_or(u64::MAX, |at| now.as_second().abs_diff(at));
        match off <= READER_WINDOW {
            true => Ok(Self { reader, jws }),
            false => Err(ApprovalError::Expired),
        }
    }

    /// Returns the payload.
    #[must_use]
    pub fn reader(&self) -> &ReaderProof {
        &self.reader
    }

    /// Returns the `kid` of the signing key.
    #[must_use]
    pub fn kid(&self) -> &str {
        self.jws.kid()
    }

    /// Verifies the signature under this key.
    ///
    /// # Errors
    /// [`ApprovalError::Signature`].
    pub fn check_signature(&self, key: &PublicKey) -> Result<(), ApprovalError> {
        key.verify_jws(&self.jws).map_err(|_| ApprovalError::Signature)
    }
}

/// Opens a compact JWS with this `typ` over the canonical form of a value.
fn open<T: Serialize + for<'de> Deserialize<'de>>(text: &str, of: &str) -> Result<(T, Jws), ApprovalError> {
    let form = |why: &str| ApprovalError::Form(why.to_owned());
    if text.len() > MAX_APPROVAL {
        return Err(form("it is too long"));
    }
    let payload = text.split('.').nth(1).filter(|payload| !payload.is_empty());
    let payload = payload.ok_or_else(|| form("a compact JWS with its payload is needed"))?;
    let payload =
        BASE64URL_NOPAD.decode(payload.as_bytes()).map_err(|_| form("the payload is not base64url"))?;
    let value: T = jose::json::read_bytes(&payload).map_err(|error| form(&error.to_string()))?;
    // The payload must be in canonical form.
    let jws =
        Jws::open(text, &jcs::canonical(&json!(value)), &[]).map_err(|error| form(&error.to_string()))?;
    match jws.text("typ") {
        Some(typ) if typ == of => Ok((value, jws)),
        _ => Err(form("its typ is not that of this kind of proof")),
    }
}

fn signed(signer: &dyn Signer, typ: &str, payload: &[u8]) -> Result<String, ApprovalError> {
    let alg = match signer.public_key().curve() {
        Curve::Ed25519 => "EdDSA",
        Curve::P256 => "ES256",
        Curve::P384 | Curve::P521 => return Err(ApprovalError::Curve),
    };
    let header: Value = json!({ "alg": alg, "kid": signer.public_key().jwk_thumbprint(), "typ": typ });
    let input = jws::signing_input(&header, payload);
    let signature = signer.sign(&input).map_err(|error| ApprovalError::Unsigned(error.to_string()))?;
    Ok(format!("{}.{}", String::from_utf8_lossy(&input), BASE64URL_NOPAD.encode(&signature)))
}
