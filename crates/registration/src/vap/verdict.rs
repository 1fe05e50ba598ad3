//! Parsed wire Verdicts (section 8, and its schema).

use jose::jcs;
use jose::json::{self, CheckedJson, Limits};
use jose::jws::{Jws, JwsError};
use jose::members::{JsonRule, quote};
use serde_json::Value;
use vap::message::MessageType;
use vap::verdict::{Method, Trigger, VerdictKind};

use super::verdict_rule::VerdictRule;
use crate::facts::Facts;
use crate::limits::JSON_DEPTH;
use crate::violation::Violation;

/// Maximum length in characters of a `session_id`.
const MAX_SESSION_ID: usize = 256;
/// Maximum length in characters of a `reason`.
const MAX_REASON: usize = 2000;
/// Further members of a Verdict's JWS header (reading V-25).
const VERDICT_HEADER: [&str; 1] = ["req"];

type Members<'a> = jose::members::Members<'a, VerdictRule>;

/// A wire Verdict that keeps every rule that does not depend on a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictRecord {
    /// The identifier of the session (`session_id`).
    pub session_id: String,
    /// The type of the answered message.
    pub in_response_to: Option<String>,
    /// The verifier's reference to its audit record.
    pub audit_ref: Option<String>,
    /// The verdict.
    pub verdict: VerdictKind,
    /// The digest of the commitment that the verifier enforces from then on.
    pub accepted_commitment_digest: Option<String>,
    /// The signature, whose form is valid, but which is not yet verified.
    pub signature: Option<Jws>,
    document: Value,
}

impl VerdictRecord {
    /// Parses a payload. Only the form of its signature is checked, because the verifier's keys are in the policy.
    pub fn read(payload: &[u8]) -> Result<VerdictRecord, Violation> {
        let limits = Limits { depth: JSON_DEPTH, ..Limits::default() };
        let text = json::check(payload, limits).map_err(|error| VerdictRule::not_json(&error))?;
        let document = text.value().map_err(|error| VerdictRule::not_json(&error))?;
        if !document.is_object() {
            return Err(VerdictRule::Json.in_payload("", "the payload is not an object"));
        }
        let top = Members::of(&document, "")?;
        top.word(VerdictRule::Version, "vap", &["0.1"])?;
        top.word(VerdictRule::Type, "type", &["verdict"])?;
        let session_id = session_id(&top)?;
        let in_response_to = in_response_to(&top)?;
        let verdict = verdict(&top)?;
        check_verification(&top.object("verification")?)?;
        check_parts(&top, verdict)?;
        let audit_ref = top.optional_text("audit_ref")?.map(str::to_owned);
        let accepted_commitment_digest = digest(&top)?;
        let signature = signature(&top, text, &document)?;
        Ok(VerdictRecord {
            session_id,
            in_response_to,
            audit_ref,
            verdict,
            accepted_commitment_digest,
            signature,
            document,
        })
    }

    pub(crate) fn state(&self, facts: &mut Facts) {
        facts.text("session_id", &self.session_id);
        facts.text("verdict", self.verdict.as_str());
        facts.put("signed", self.signature.is_some().into());
        for (name, text) in [("in_response_to", &self.in_response_to), ("audit_ref", &self.audit_ref)] {
            if let Some(text) = text {
                facts.text(name, text);
            }
        }
        if let Some(signature) = &self.signature {
            facts.text("verifier_kid", signature.kid());
        }
    }

    /// The JSON of the payload.
    pub(crate) fn payload_json(&self) -> &Value {
        &self.document
    }
}

fn session_id(top: &Members<'_>) -> Result<String, Violation> {
    let id = top.text("session_id")?;
    match id.chars().count() {
        1..=MAX_SESSION_ID => Ok(id.to_owned()),
        _ => Err(top.broken(VerdictRule::Length, "session_id", "1 to 256 characters are needed here")),
    }
}

fn in_response_to(top: &Members<'_>) -> Result<Option<String>, Violation> {
    let word = top.optional("in_response_to", |top, name| {
        top.word(VerdictRule::InResponseTo, name, &MessageType::WORDS)
    });
    Ok(word?.map(str::to_owned))
}

fn verdict(top: &Members<'_>) -> Result<VerdictKind, Violation> {
    let word = top.text("verdict")?;
    VerdictKind::from_word(word).ok_or_else(|| {
        let detail = format!("found {}, needed served, clarify, downgraded or denied", quote(word));
        VerdictRule::Verdict.in_payload("/verdict", detail)
    })
}

fn check_verification(verification: &Members<'_>) -> Result<(), Violation> {
    verification.texts("checks")?;
    verification.word(VerdictRule::Method, "method", &Method::WORDS)?;
    verification.optional_bool("semantic_invoked")?;
    verification.optional("semantic_trigger", |verification, name| {
        verification.word(VerdictRule::SemanticTrigger, name, &Trigger::WORDS)
    })?;
    for name in ["risk_score", "confidence"] {
        if verification.optional_number(name)?.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
            return Err(verification.broken(VerdictRule::Score, name, "a number from 0 to 1 is needed here"));
        }
    }
    match verification.optional_text("reason")? {
        Some(reason) if reason.chars().nth(MAX_REASON).is_some() => {
            Err(verification.broken(VerdictRule::Length, "reason", "at most 2000 characters are needed here"))
        }
        _ => Ok(()),
    }
}

/// Checks the members that depend on the verdict.
fn check_parts(top: &Members<'_>, verdict: VerdictKind) -> Result<(), Violation> {
    top.optional_object("result")?;
    if let Some(clarification) = top.optional_object("clarification")? {
        if clarification.text("question")?.is_empty() {
            let detail = "at least one character is needed here";
            return Err(clarification.broken(VerdictRule::Length, "question", detail));
        }
        clarification.optional_object("schema")?;
    } else if verdict == VerdictKind::Clarify {
        let detail = "a verdict \"clarify\" says what has to be clarified";
        return Err(VerdictRule::Clarification.in_payload("/clarification", detail));
    }
    if let Some(downgrade) = top.optional_object("downgrade")? {
        downgrade.optional_object("applied_scope")?;
        downgrade.optional_text("note")?;
    }
    match top.optional_text("expires_at")? {
        Some(time) if !is_rfc3339(time) => {
            let detail = format!("found {}, needed a time of RFC 3339 with its offset", quote(time));
            Err(VerdictRule::ExpiresAt.in_payload("/expires_at", detail))
        }
        _ => Ok(()),
    }
}

/// Returns whether a text is a `date-time` of RFC 3339, in either case and with any fraction. Its form is checked here,
/// its calendar date by jiff.
fn is_rfc3339(text: &str) -> bool {
    let shaped = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                other => byte.eq_ignore_ascii_case(&other),
            })
    };
    let Some((seconds, rest)) = text.split_at_checked(19) else { return false };
    let digits =
        rest.strip_prefix('.').map_or(0, |rest| 1 + rest.bytes().take_while(u8::is_ascii_digit).count());
    let (fraction, offset) = rest.split_at(digits);
    shaped(seconds, "0000-00-00T00:00:00")
        && fraction.len() != 1
        && ["Z", "+00:00", "-00:00"].iter().any(|shape| shaped(offset, shape))
        && format!("{seconds}{offset}").to_uppercase().parse::<jiff::Timestamp>().is_ok()
}

/// Parses a digest with the schema's pattern: `^[a-z0-9]+:[A-Fa-f0-9]+$`.
fn digest(top: &Members<'_>) -> Result<Option<String>, Violation> {
    let Some(digest) = top.optional_text("accepted_commitment_digest")? else { return Ok(None) };
    let sound = digest.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty()
            && algorithm.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && !hex.is_empty()
            && hex.bytes().all(|b| b.is_ascii_hexdigit())
    });
    match sound {
        true => Ok(Some(digest.to_owned())),
        false => {
            let detail = format!("found {}, needed an algorithm, \":\" and hex digits", quote(digest));
            Err(VerdictRule::Digest.in_payload("/accepted_commitment_digest", detail))
        }
    }
}

/// Parses the signature over the message without it.
fn signature(top: &Members<'_>, text: CheckedJson<'_>, document: &Value) -> Result<Option<Jws>, Violation> {
    let Some(signature) = top.optional_text("signature")? else { return Ok(None) };
    if let Some(offset) = text.first_inexact_number() {
        let detail = format!("the number at byte {offset} has another value in canonical JSON");
        return Err(VerdictRule::NotCanonical.in_payload("", detail));
    }
    let mut message = document.clone();
    if let Value::Object(members) = &mut message {
        members.remove("signature");
    }
    Jws::open(signature, &jcs::canonical(&message), &VERDICT_HEADER)
        .map(Some)
        .map_err(|error| form_rule(&error).in_payload("/signature", error.to_string()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_an_offset_are_times() {
        for good in [
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00.5Z",
            "2026-01-01T00:00:00.123456789+02:00",
            "2024-02-29T23:59:59-08:00",
            "2026-01-01t00:00:00z",
            "2026-01-01T00:00:00.123456789012345Z",
            "2026-01-01T00:00:00-00:00",
        ] {
            assert!(is_rfc3339(good), "{good}");
        }
        for bad in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+0200",
            "2026-01-01T00:00:00Z[UTC]",
            "2026-02-29T00:00:00Z",
            "2026-01-01T25:00:00Z",
            "2026-01-01T00:00:00+02",
            "2026-01-01T00:00é00Z",
        ] {
            assert!(!is_rfc3339(bad), "{bad}");
        }
    }
}
