//! The Verdict (VAP, section 8): what was decided and why, as its agent gets it.
//!
//! It holds no tool output (reading V-24) and no text of a judge or a policy (V-27). What it answers is bound in the
//! signature's protected header, since the schema leaves no member for it (V-25): `iat`, `jti`, and `req`, the digest of the
//! message.
//!
//! Not here: which of the keys of `_meta` it goes under, and in which shape (`message::slot`).

use jose::{jcs, jws};
use scitt::{Algorithm, Curve, SignError, Signer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::digest::Digest;
use crate::message::{Deadline, MessageType};
use crate::reason::Reason;

/// The `typ` of a Verdict's signature.
pub const SIGNATURE_TYPE: &str = "vap-verdict+jws";

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    /// Accepted or executed.
    Served,
    /// More has to be known.
    Clarify,
    /// Accepted with less, or in restricted mode (reading V-23).
    Downgraded,
    /// Refused.
    Denied,
}

/// What was decided, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Which VAP.
    pub vap: Version,
    /// What it is.
    pub r#type: Type,
    /// The session, or `none`.
    pub session_id: String,
    /// What it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_response_to: Option<MessageType>,
    /// What was decided.
    pub verdict: VerdictKind,
    /// The commitment that is in force now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_commitment_digest: Option<Digest>,
    /// How the decision was reached.
    pub verification: Verification,
    /// What has to be known: with `clarify`, and only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clarification: Option<Clarification>,
    /// What was reduced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downgrade: Option<Downgrade>,
    /// Where the log has the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_ref: Option<String>,
    /// Until when it may be used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Deadline>,
}

/// How a decision was reached: codes only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// The checks that ran and how they went: `scope_ok`, `policy:R3_ok`.
    pub checks: Vec<String>,
    /// Which tiers ran.
    pub method: Method,
    /// How risky the call looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_score: Option<Score>,
    /// Whether the judge was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_invoked: Option<bool>,
    /// Why it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_trigger: Option<Trigger>,
    /// How sure it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Score>,
    /// Why it was not simply served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

/// Which tiers ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Method {
    /// C1 to C3.
    #[default]
    #[serde(rename = "static")]
    Static,
    /// C4 too.
    #[serde(rename = "static+policy")]
    Policy,
    /// C5 too.
    #[serde(rename = "static+semantic")]
    Semantic,
    /// All of them.
    #[serde(rename = "static+policy+semantic")]
    PolicyAndSemantic,
}

/// Why the judge was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A commitment.
    SessionStart,
    /// An amendment.
    Amendment,
    /// A dangerous class of tool.
    Sensitivity,
    /// Consumption outpaces the budget.
    BurnRateAnomaly,
    /// The same call again and again.
    Looping,
    /// A tool for the first time.
    Novelty,
    /// Close to a limit.
    ThresholdProximity,
    /// By chance.
    RandomSample,
    /// At the edge of the scope.
    ScopeBoundary,
}

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Score(f64);

/// The number is not from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not from 0 to 1")]
pub struct NotAScore(pub f64);

/// A question for a human.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clarification {
    /// The question, built from the tool's name and its arguments (reading V-26).
    pub question: String,
    /// The form of the answer: a flat JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// What was reduced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Downgrade {
    /// What is in force instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_scope: Option<Value>,
    /// In a few fixed words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a Verdict's signature binds it to (reading V-25).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// When it was signed, in Unix seconds.
    pub iat: u64,
    /// Its own name.
    pub jti: String,
    /// The message it answers, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub req: Option<Digest>,
}

/// The version of VAP that a Verdict is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// 0.1.
    #[serde(rename = "0.1")]
    V01,
}

/// The one value of `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    /// A verdict.
    #[serde(rename = "verdict")]
    Verdict,
}

impl Verdict {
    /// A verdict with nothing optional in it.
    pub fn new(
        session_id: impl Into<String>,
        in_response_to: Option<MessageType>,
        verdict: VerdictKind,
        verification: Verification,
    ) -> Verdict {
        Verdict {
            vap: Version::V01,
            r#type: Type::Verdict,
            session_id: session_id.into(),
            in_response_to,
            verdict,
            accepted_commitment_digest: None,
            verification,
            clarification: None,
            downgrade: None,
            audit_ref: None,
            expires_at: None,
        }
    }

    /// With the place of its record.
    #[must_use]
    pub fn with_audit_ref(self, audit_ref: impl Into<String>) -> Verdict {
        Verdict { audit_ref: Some(audit_ref.into()), ..self }
    }

    /// As JSON, without a signature.
    pub fn to_value(&self) -> Value {
        json!(self)
    }

    /// What the record commits to: without `audit_ref`, which names the record, and without a signature.
    pub fn to_record(&self) -> Vec<u8> {
        jcs::canonical(&json!(Verdict { audit_ref: None, ..self.clone() }))
    }

    /// The signed text: canonical, with a detached signature over the rest of it (reading V-20).
    ///
    /// # Errors
    /// If the signer does not sign.
    pub fn sign(&self, signer: &dyn Signer, binding: &Binding) -> Result<String, SignError> {
        let mut document = self.to_value();
        let signature = detached(signer, &binding.header(signer), &jcs::canonical(&document))?;
        document["signature"] = signature.into();
        Ok(String::from_utf8_lossy(&jcs::canonical(&document)).into_owned())
    }
}

impl Binding {
    fn header(&self, signer: &dyn Signer) -> Value {
        let mut header = json!({
            "alg": "EdDSA",
            "kid": signer.public_key().jwk_thumbprint(),
            "typ": SIGNATURE_TYPE,
            "iat": self.iat,
            "jti": self.jti,
        });
        if let Some(req) = &self.req {
            header["req"] = req.as_str().into();
        }
        header
    }
}

/// A detached signature of an Ed25519 key: the header says so.
fn detached(signer: &dyn Signer, header: &Value, payload: &[u8]) -> Result<String, SignError> {
    if signer.public_key().curve() != Curve::Ed25519 {
        return Err(SignError::AlgorithmMismatch { header: Algorithm::EdDsa, signer: signer.algorithm() });
    }
    let input = jws::signing_input(header, payload);
    Ok(jws::detached(&input, &signer.sign(&input)?))
}

impl VerdictKind {
    /// All of them.
    pub const ALL: [VerdictKind; 4] =
        [VerdictKind::Served, VerdictKind::Clarify, VerdictKind::Downgraded, VerdictKind::Denied];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            VerdictKind::Served => "served",
            VerdictKind::Clarify => "clarify",
            VerdictKind::Downgraded => "downgraded",
            VerdictKind::Denied => "denied",
        }
    }

    /// Whether the call goes on, or the message is accepted.
    pub const fn is_permit(self) -> bool {
        matches!(self, VerdictKind::Served | VerdictKind::Downgraded)
    }
}

impl Method {
    /// The method of a decision that ran these tiers besides the static one.
    pub const fn of(policy: bool, semantic: bool) -> Method {
        match (policy, semantic) {
            (false, false) => Method::Static,
            (true, false) => Method::Policy,
            (false, true) => Method::Semantic,
            (true, true) => Method::PolicyAndSemantic,
        }
    }
}

impl Score {
    /// The nearest score; what is no number counts as the worst.
    pub fn clamped(score: f64) -> Score {
        Score(if score.is_nan() { 1.0 } else { score.clamp(0.0, 1.0) })
    }

    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Score {
    type Error = NotAScore;

    fn try_from(score: f64) -> Result<Score, NotAScore> {
        if (0.0..=1.0).contains(&score) { Ok(Score(score)) } else { Err(NotAScore(score)) }
    }
}

impl From<Score> for f64 {
    fn from(score: Score) -> f64 {
        score.0
    }
}
