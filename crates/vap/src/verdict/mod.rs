//! The Verdict (VAP, section 8): the decision and its reasons, as sent to the agent.
//!
//! It contains no tool output (reading V-24) and no text of a judge or a policy (V-27). The schema has no member for
//! the message that a Verdict answers, so the signature's protected header binds it (V-25): `iat`, `jti`, and `req`,
//! the digest of the message.
//!
//! A verifier's Verdict is read by [`ReceivedVerdict`], with the rules of the schema ([`VerdictRule`]).
//!
//! Not here: the key in `_meta` and the shape of the slot ([`message::slot`](crate::message::slot)).

mod read;
mod rule;

use jose::{jcs, jws};
use scitt::{Algorithm, Curve, SignError, Signer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::read::ReceivedVerdict;
pub(crate) use self::read::score;
pub use self::rule::VerdictRule;
use crate::digest::Digest;
use crate::message::{Deadline, MessageType};
use crate::reason::Reason;
use crate::word::words;

/// The `typ` header of a Verdict's signature.
pub const SIGNATURE_TYPE: &str = "vap-verdict+jws";

words! {
    /// The decision of a Verdict.
    pub enum VerdictKind {
        /// The message is accepted, or the call is executed.
        Served = "served",
        /// A human has to answer a question first.
        Clarify = "clarify",
        /// The message is accepted with reduced limits, or the call is served in restricted mode (reading V-23).
        Downgraded = "downgraded",
        /// The message or the call is denied.
        Denied = "denied",
    }
}

/// A Verdict (VAP, section 8), unsigned. `R` is the type of the reason, as in [`Verification`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict<R = Reason> {
    /// The VAP version, `0.1`.
    pub vap: Version,
    /// The message type, always `verdict`.
    pub r#type: Type,
    /// The session's id, or `none` ([`NO_SESSION`](crate::message::NO_SESSION)).
    pub session_id: String,
    /// The type of the message that the Verdict answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_response_to: Option<MessageType>,
    /// The decision.
    pub verdict: VerdictKind,
    /// The digest of the effective commitment now in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_commitment_digest: Option<Digest>,
    /// The checks behind the decision.
    pub verification: Verification<R>,
    /// The question to a human; present with `clarify` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clarification: Option<Clarification>,
    /// The reduction that was applied; present with `downgraded` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downgrade: Option<Downgrade>,
    /// The identifier of the record on the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_ref: Option<String>,
    /// The time until which the Verdict may be reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Deadline>,
}

/// The checks behind a decision: codes only, no free text. `R` is the type of the reason: another gateway's record may
/// have a code that is not a [`Reason`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification<R = Reason> {
    /// The checks that ran, with their results: `scope_ok`, `policy:R3_ok`.
    pub checks: Vec<String>,
    /// The tiers of checks that ran.
    pub method: Method,
    /// The risk score of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_score: Option<Score>,
    /// `true` if the judge was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_invoked: Option<bool>,
    /// The reason for asking the judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_trigger: Option<Trigger>,
    /// The judge's confidence in its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Score>,
    /// The reason for a decision other than `served`.
    #[serde(default = "no_reason", skip_serializing_if = "Option::is_none")]
    pub reason: Option<R>,
}

const fn no_reason<R>() -> Option<R> {
    None
}

words! {
    /// The tiers of checks that ran for a decision.
    #[derive(Default)]
    pub enum Method {
        /// The static checks C1 to C3.
        #[default]
        Static = "static",
        /// The static checks and the operator's policy (C4).
        Policy = "static+policy",
        /// The static checks and the judge (C5).
        Semantic = "static+semantic",
        /// The static checks, the policy and the judge.
        PolicyAndSemantic = "static+policy+semantic",
    }
}

words! {
    /// The reason for asking the judge (`semantic_trigger`).
    pub enum Trigger {
        /// The message is a commitment.
        SessionStart = "session_start",
        /// The message is an amendment.
        Amendment = "amendment",
        /// The tool has a sensitive class.
        Sensitivity = "sensitivity",
        /// Consumption runs ahead of the budget.
        BurnRateAnomaly = "burn_rate_anomaly",
        /// A call is repeated.
        Looping = "looping",
        /// The tool, or the shape of its arguments, is new in the session.
        Novelty = "novelty",
        /// A limit of the budget is close.
        ThresholdProximity = "threshold_proximity",
        /// The call was selected at random.
        RandomSample = "random_sample",
        /// The call is at the edge of the scope.
        ScopeBoundary = "scope_boundary",
    }
}

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Score(f64);

/// The error for a number outside of 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not from 0 to 1")]
pub struct NotAScore(pub f64);

/// A question to a human, sent with `clarify`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clarification {
    /// The question, built from the tool's name and arguments (reading V-26).
    pub question: String,
    /// A flat JSON Schema for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// The reduction that was applied to a commitment or a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Downgrade {
    /// The scope and budget in force instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_scope: Option<Value>,
    /// A note, one of a few fixed texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The members of the signature's protected header that bind a Verdict to its message (reading V-25).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The signing time in Unix seconds.
    pub iat: u64,
    /// A unique identifier of the Verdict.
    pub jti: String,
    /// The digest of the message that the Verdict answers, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub req: Option<Digest>,
}

/// The VAP version in a Verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// `0.1`.
    #[serde(rename = "0.1")]
    V01,
}

/// The value of a Verdict's member `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    /// `verdict`.
    #[serde(rename = "verdict")]
    Verdict,
}

impl Verdict {
    /// Creates a verdict without optional members.
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

    /// Returns the Verdict as JSON, unsigned.
    pub fn to_value(&self) -> Value {
        json!(self)
    }

    /// Returns the canonical bytes that the record on the log commits to: without `audit_ref`, which identifies that
    /// record, and without a signature.
    pub fn to_record(&self) -> Vec<u8> {
        jcs::canonical(&json!(Verdict { audit_ref: None, ..self.clone() }))
    }

    /// Signs the Verdict and returns its canonical text with the member `signature`, a detached JWS over the rest
    /// (reading V-20).
    ///
    /// # Errors
    /// [`SignError`] if the key is not Ed25519, or the signer fails.
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

/// Creates a detached JWS. The signer must have an Ed25519 key, since the header declares `EdDSA`.
fn detached(signer: &dyn Signer, header: &Value, payload: &[u8]) -> Result<String, SignError> {
    if signer.public_key().curve() != Curve::Ed25519 {
        return Err(SignError::AlgorithmMismatch { header: Algorithm::EdDsa, signer: signer.algorithm() });
    }
    let input = jws::signing_input(header, payload);
    Ok(jws::detached(&input, &signer.sign(&input)?))
}

impl VerdictKind {
    /// Returns `true` for `served` and `downgraded`: the call is forwarded, or the message is accepted.
    pub const fn is_permit(self) -> bool {
        matches!(self, VerdictKind::Served | VerdictKind::Downgraded)
    }
}

impl<R> Default for Verification<R> {
    fn default() -> Self {
        Verification {
            checks: Vec::new(),
            method: Method::Static,
            risk_score: None,
            semantic_invoked: None,
            semantic_trigger: None,
            confidence: None,
            reason: None,
        }
    }
}

impl Verification {
    /// Returns the checks with the reason's code, as an audit record has them.
    pub fn to_record(&self) -> Verification<String> {
        Verification {
            checks: self.checks.clone(),
            method: self.method,
            risk_score: self.risk_score,
            semantic_invoked: self.semantic_invoked,
            semantic_trigger: self.semantic_trigger,
            confidence: self.confidence,
            reason: self.reason.as_ref().map(Reason::to_string),
        }
    }
}

impl Method {
    /// Returns the method for a decision that ran these tiers in addition to the static checks.
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
    /// Clamps a number to 0 to 1; NaN becomes 1, the highest score.
    pub fn clamped(score: f64) -> Score {
        Score(if score.is_nan() { 1.0 } else { score.clamp(0.0, 1.0) })
    }

    /// Returns the number.
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
