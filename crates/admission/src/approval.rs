//! Approvals: a question that is put to a person outside of the client, and the answer that this person signs.
//!
//! A [`Question`] is about one [`Subject`]: a call with its exact arguments, or a commitment or an amendment. The answer is a
//! compact JWS over an [`Approval`], which names the question, the digest of its subject, the decision and until when it counts.
//! It is good for that subject alone: other arguments, another session or another route have another digest. Whose keys count is
//! asked when the call is decided, not when the answer came.
//!
//! Not here: where questions are kept and that each is answered once (the gateway's desk), and how they reach an approver.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use jiff::Timestamp;
use jose::jcs;
use jose::jwk::Curve;
use jose::jws::{self, Jws};
use scitt::{PublicKey, Signer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::digest::Digest;
use crate::limits::{MAX_APPROVAL, MAX_APPROVAL_REASON, MAX_APPROVER};

/// The `typ` of a signed answer.
const APPROVAL_TYPE: &str = "vap-approval";
/// The `typ` of what an approver shows to read questions.
const READER_TYPE: &str = "vap-approver";
/// Bytes of a question's id.
const ID_BYTES: usize = 16;
/// Seconds by which the time in a reader's proof may be off.
const READER_WINDOW: u64 = 60;

/// What an approver is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubjectKind {
    /// A call.
    Call,
    /// A scope commitment.
    Commitment,
    /// A scope amendment.
    Amendment,
}

/// What a question is about, in every member that makes it another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// What it is.
    pub kind: SubjectKind,
    /// The gateway's name.
    pub gateway: String,
    /// The route.
    pub route: String,
    /// The session, or `none`.
    pub session_id: String,
    /// The digest that stands for the principal; empty if nothing is known of the caller.
    pub principal: String,
    /// The digest of the commitment under which it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Digest>,
    /// The tool of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The canonical text of the arguments, or of the message without its signature.
    pub content: String,
}

impl Subject {
    /// The digest of the canonical form: what an approver signs.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&jcs::canonical(&json!(self)))
    }

    /// What an approver is listed for: the tool of a call, or the word for a message.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Its name: 32 hexadecimal digits.
    pub id: String,
    /// What it is about.
    pub subject: Subject,
    /// The agent, as it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// How that name was shown.
    pub agent_proven_by: String,
    /// Why it is asked: the code of a rule, or of the setting.
    pub because: String,
    /// When it was asked, in Unix seconds.
    pub asked: i64,
    /// Until when it can be answered, in Unix seconds.
    pub expires: i64,
}

impl Question {
    /// Whether it can be answered no more.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        now.as_second() >= self.expires
    }
}

/// The id of a question, from chance.
#[must_use]
pub fn id_of(secret: &[u8; 32]) -> String {
    HEXLOWER.encode(&secret[..ID_BYTES])
}

/// The id of the question about a message: the same whenever the message is sent.
#[must_use]
pub fn id_of_subject(subject: &Subject) -> String {
    let digest = subject.digest();
    let hex = digest.as_str().rsplit(':').next().unwrap_or_default();
    hex.chars().take(2 * ID_BYTES).collect()
}

/// Whether a text can be the id of a question.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == 2 * ID_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What an approver decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It may go on.
    Approve,
    /// It may not.
    Deny,
}

impl Decision {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Decision::Approve => "approve",
            Decision::Deny => "deny",
        }
    }
}

/// What is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The question.
    pub question: String,
    /// The digest of its subject.
    pub digest: Digest,
    /// The decision.
    pub decision: Decision,
    /// Until when it counts, in Unix seconds.
    pub expires: i64,
    /// The approver's name, as the gateway has it.
    pub approver: String,
    /// Why, in the approver's words: for the evidence alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a text is no signed answer, or not one to this question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// It has not the form.
    #[error("it is no signed approval: {0}")]
    Form(String),
    /// The key is none of an approver who may answer this, now.
    #[error("no approver who may answer this has the key {0} now")]
    Key(String),
    /// The signature is wrong.
    #[error("the signature does not verify")]
    Signature,
    /// It names another approver than the key's.
    #[error("the key belongs to another approver than it names")]
    Approver,
    /// It answers another question.
    #[error("it answers another question")]
    Question,
    /// It is about something else.
    #[error("its digest is not that of what was asked about")]
    Digest,
    /// It does not count any more, or for longer than the question.
    #[error("it has expired, or outlives the question")]
    Expired,
    /// Only Ed25519 and P-256 keys sign.
    #[error("approvals are signed with Ed25519 or P-256")]
    Curve,
    /// The key does not sign.
    #[error("the key does not sign: {0}")]
    Unsigned(String),
}

/// A signed answer whose form is sound. Nothing is proven before a key says so.
#[derive(Clone, Debug)]
pub struct SignedApproval {
    approval: Approval,
    jws: Jws,
    digest: Digest,
}

impl SignedApproval {
    /// Reads one.
    ///
    /// # Errors
    /// If it has not the form.
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

    /// What it says.
    #[must_use]
    pub fn approval(&self) -> &Approval {
        &self.approval
    }

    /// The name of the key.
    #[must_use]
    pub fn kid(&self) -> &str {
        self.jws.kid()
    }

    /// The digest of its text: what the record on the log carries.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Checks that it is signed with this key.
    ///
    /// # Errors
    /// If it is not.
    pub fn check_signature(&self, key: &PublicKey) -> Result<(), ApprovalError> {
        key.verify_jws(&self.jws).map_err(|_| ApprovalError::Signature)
    }

    /// Checks that it answers this question, and counts at this time.
    ///
    /// # Errors
    /// If it does not.
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
    /// The answer to a question, good for as long as the question is open.
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

    /// Signs it.
    ///
    /// # Errors
    /// If the key is on another curve, or does not sign.
    pub fn sign(&self, signer: &dyn Signer) -> Result<String, ApprovalError> {
        signed(signer, APPROVAL_TYPE, &jcs::canonical(&json!(self)))
    }
}

/// What an approver shows to read questions: signed for one gateway, just now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reader {
    /// The origin of the listener that it is for.
    pub origin: String,
    /// When, in Unix seconds.
    pub at: u64,
}

impl Reader {
    /// Signs it.
    ///
    /// # Errors
    /// If the key is on another curve, or does not sign.
    pub fn sign(&self, signer: &dyn Signer) -> Result<String, ApprovalError> {
        signed(signer, READER_TYPE, &jcs::canonical(&json!(self)))
    }
}

/// A reader's proof whose form is sound and whose time is now.
#[derive(Clone, Debug)]
pub struct SignedReader {
    reader: Reader,
    jws: Jws,
}

impl SignedReader {
    /// Reads one.
    ///
    /// # Errors
    /// If it has not the form, or was made too long ago.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, ApprovalError> {
        let (reader, jws) = open::<Reader>(text, READER_TYPE)?;
        let off = i64::try_from(reader.at).map_or(u64::MAX, |at| now.as_second().abs_diff(at));
        match off <= READER_WINDOW {
            true => Ok(Self { reader, jws }),
            false => Err(ApprovalError::Expired),
        }
    }

    /// What it says.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The name of the key.
    #[must_use]
    pub fn kid(&self) -> &str {
        self.jws.kid()
    }

    /// Checks that it is signed with this key.
    ///
    /// # Errors
    /// If it is not.
    pub fn check_signature(&self, key: &PublicKey) -> Result<(), ApprovalError> {
        key.verify_jws(&self.jws).map_err(|_| ApprovalError::Signature)
    }
}

/// Opens a compact JWS of this type over the canonical form of a value.
fn open<T: Serialize + for<'de> Deserialize<'de>>(text: &str, of: &str) -> Result<(T, Jws), ApprovalError> {
    let form = |why: &str| ApprovalError::Form(why.to_owned());
    if text.len() > MAX_APPROVAL {
        return Err(form("it is too long"));
    }
    let payload = text.split('.').nth(1).filter(|payload| !payload.is_empty());
    let payload = payload.ok_or_else(|| form("a compact JWS with its payload is needed"))?;
    let payload =
        BASE64URL_NOPAD.decode(payload.as_bytes()).map_err(|_| form("the payload is no base64url"))?;
    let value: T = jose::json::read_bytes(&payload).map_err(|error| form(&error.to_string()))?;
    // The payload that came along has to be the canonical form.
    let jws =
        Jws::open(text, &jcs::canonical(&json!(value)), &[]).map_err(|error| form(&error.to_string()))?;
    match jws.text("typ") {
        Some(typ) if typ == of => Ok((value, jws)),
        _ => Err(form("its typ is another one")),
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
