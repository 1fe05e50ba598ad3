//! Parser of a Verdict as any verifier writes it: the members of the schema are read, and others are ignored (reading
//! 4.1).

use jose::BrokenRule;
use jose::jcs;
use jose::json::{self, CheckedJson, Limits};
use jose::jws::{Jws, JwsError};
use jose::members::{JsonRule, Rule};
use serde_json::Value;

use super::{
    Clarification, Downgrade, Method, Score, Trigger, Type, Verdict, VerdictKind, VerdictRule, Verification,
    Version,
};
use crate::digest::Digest;
use crate::limits::{JSON_DEPTH, MAX_REASON, MAX_SESSION_ID};
use crate::message::{Deadline, MessageType};
use crate::word::read_word;

/// Further members of a Verdict's JWS header (reading V-25).
const VERDICT_HEADER: [&str; 1] = ["req"];

type Members<'a> = jose::members::Members<'a, VerdictRule>;

/// A Verdict with its signature, as received. It keeps every rule that does not depend on a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedVerdict {
    /// The Verdict. The reason is a text, since another verifier may give one that is not a
    /// [`Reason`](crate::reason::Reason).
    pub verdict: Verdict<String>,
    /// The signature, whose form is valid, but which is not yet verified.
    pub signature: Option<Jws>,
    document: Value,
}

impl ReceivedVerdict {
    /// Parses a payload. Only the form of its signature is checked, because the caller has the verifier's keys.
    ///
    /// # Errors
    /// [`BrokenRule`] with the name of a [`VerdictRule`].
    pub fn read(payload: &[u8]) -> Result<ReceivedVerdict, BrokenRule> {
        let limits = Limits { depth: JSON_DEPTH, ..Limits::default() };
        let text = json::check(payload, limits).map_err(|error| VerdictRule::not_json(&error))?;
        let document = text.value().map_err(|error| VerdictRule::not_json(&error))?;
        if !document.is_object() {
            return Err(whole(VerdictRule::Json, "the payload is not an object"));
        }
        let top = Members::of(&document, "")?;
        let verdict = verdict(&top)?;
        let signature = signature(&top, text, &document)?;
        Ok(ReceivedVerdict { verdict, signature, document })
    }

    /// Returns the JSON of the payload.
    pub fn document(&self) -> &Value {
        &self.document
    }
}

/// Reads the members in the order in which a broken rule is reported.
fn verdict(top: &Members<'_>) -> Result<Verdict<String>, BrokenRule> {
    top.word(VerdictRule::Version, "vap", &["0.1"])?;
    top.word(VerdictRule::Type, "type", &["verdict"])?;
    let session_id = session_id(top)?;
    let in_response_to = in_response_to(top)?;
    let kind = kind(top)?;
    let verification = verification(&top.object("verification")?)?;
    top.optional_object("result")?;
    Ok(Verdict {
        vap: Version::V01,
        r#type: Type::Verdict,
        session_id,
        in_response_to,
        verdict: kind,
        verification,
        clarification: clarification(top, kind)?,
        downgrade: downgrade(top)?,
        expires_at: expires_at(top)?,
        audit_ref: top.optional_text("audit_ref")?.map(str::to_owned),
        accepted_commitment_digest: digest(top)?,
    })
}

fn session_id(top: &Members<'_>) -> Result<String, BrokenRule> {
    let id = top.text("session_id")?;
    match id.chars().count() {
        1..=MAX_SESSION_ID => Ok(id.to_owned()),
        _ => Err(top.broken(VerdictRule::Length, "session_id", "1 to 256 characters are needed here")),
    }
}

fn in_response_to(top: &Members<'_>) -> Result<Option<MessageType>, BrokenRule> {
    top.optional("in_response_to", |top, name| {
        read_word(top, VerdictRule::InResponseTo, name, (&MessageType::WORDS, MessageType::from_word))
    })
}

fn kind(top: &Members<'_>) -> Result<VerdictKind, BrokenRule> {
    let word = top.text("verdict")?;
    VerdictKind::from_word(word).ok_or_else(|| {
        top.unfit(VerdictRule::Verdict, "verdict", word, "served, clarify, downgraded or denied")
    })
}

fn verification(members: &Members<'_>) -> Result<Verification<String>, BrokenRule> {
    Ok(Verification {
        checks: members.texts("checks")?.into_iter().map(str::to_owned).collect(),
        method: read_word(members, VerdictRule::Method, "method", (&Method::WORDS, Method::from_word))?,
        semantic_invoked: members.optional_bool("semantic_invoked")?,
        semantic_trigger: members.optional("semantic_trigger", |members, name| {
            read_word(members, VerdictRule::SemanticTrigger, name, (&Trigger::WORDS, Trigger::from_word))
        })?,
        risk_score: score(members, VerdictRule::Score, "risk_score")?,
        confidence: score(members, VerdictRule::Score, "confidence")?,
        reason: reason(members)?,
    })
}

/// Parses a number from 0 to 1.
pub(crate) fn score<R: Rule>(
    members: &jose::members::Members<'_, R>,
    rule: R,
    name: &str,
) -> Result<Option<Score>, R::Error> {
    let Some(number) = members.optional_number(name)? else { return Ok(None) };
    let score = Score::try_from(number)
        .map_err(|_| members.broken(rule, name, "a number from 0 to 1 is needed here"))?;
    Ok(Some(score))
}

fn reason(verification: &Members<'_>) -> Result<Option<String>, BrokenRule> {
    match verification.optional_text("reason")? {
        Some(reason) if reason.chars().nth(MAX_REASON).is_some() => {
            Err(verification.broken(VerdictRule::Length, "reason", "at most 2000 characters are needed here"))
        }
        reason => Ok(reason.map(str::to_owned)),
    }
}

fn clarification(top: &Members<'_>, verdict: VerdictKind) -> Result<Option<Clarification>, BrokenRule> {
    let Some(clarification) = top.optional_object("clarification")? else {
        return match verdict {
            VerdictKind::Clarify => {
                let detail = "a verdict \"clarify\" names the open question";
                Err(top.broken(VerdictRule::Clarification, "clarification", detail))
            }
            _ => Ok(None),
        };
    };
    let question = clarification.text("question")?.to_owned();
    if question.is_empty() {
        let detail = "at least one character is needed here";
        return Err(clarification.broken(VerdictRule::Length, "question", detail));
    }
    Ok(Some(Clarification { question, schema: object(&clarification, "schema")? }))
}

fn downgrade(top: &Members<'_>) -> Result<Option<Downgrade>, BrokenRule> {
    let Some(downgrade) = top.optional_object("downgrade")? else { return Ok(None) };
    Ok(Some(Downgrade {
        applied_scope: object(&downgrade, "applied_scope")?,
        note: downgrade.optional_text("note")?.map(str::to_owned),
    }))
}

/// Parses an optional object of any content.
fn object(members: &Members<'_>, name: &str) -> Result<Option<Value>, BrokenRule> {
    members.optional_object(name)?;
    Ok(members.get(name).cloned())
}

fn expires_at(top: &Members<'_>) -> Result<Option<Deadline>, BrokenRule> {
    top.optional("expires_at", |top, name| {
        let time = top.text(name)?;
        Deadline::parse(time)
            .map_err(|_| top.unfit(VerdictRule::ExpiresAt, name, time, "a time of RFC 3339 with its offset"))
    })
}

fn digest(top: &Members<'_>) -> Result<Option<Digest>, BrokenRule> {
    top.optional("accepted_commitment_digest", |top, name| {
        let digest = top.text(name)?;
        Digest::parse(digest)
            .map_err(|_| top.unfit(VerdictRule::Digest, name, digest, "an algorithm, \":\" and hex digits"))
    })
}

/// Parses the signature over the message without it.
fn signature(top: &Members<'_>, text: CheckedJson<'_>, document: &Value) -> Result<Option<Jws>, BrokenRule> {
    let Some(signature) = top.optional_text("signature")? else { return Ok(None) };
    if let Some(offset) = text.first_inexact_number() {
        let detail = format!("the number at byte {offset} has another value in canonical JSON");
        return Err(whole(VerdictRule::NotCanonical, detail));
    }
    let mut message = document.clone();
    if let Value::Object(members) = &mut message {
        members.remove("signature");
    }
    Jws::open(signature, &jcs::canonical(&message), &VERDICT_HEADER)
        .map(Some)
        .map_err(|error| top.broken(form_rule(&error), "signature", error.to_string()))
}

/// Returns the error for a rule that the whole payload breaks.
fn whole(rule: VerdictRule, detail: impl Into<String>) -> BrokenRule {
    rule.broken(String::new(), detail.into())
}

fn form_rule(error: &JwsError) -> VerdictRule {
    match error {
        JwsError::NotCompact | JwsError::Base64(_) => VerdictRule::SignatureForm,
        JwsError::Algorithm(_) => VerdictRule::SignatureAlgorithm,
        JwsError::PayloadDiffers => VerdictRule::SignaturePayload,
        JwsError::Json(_)
        | JwsError::NotAnObject
        | JwsError::Forbidden(_)
        | JwsError::Unknown(_)
        | JwsError::Member(..) => VerdictRule::SignatureHeader,
    }
}
