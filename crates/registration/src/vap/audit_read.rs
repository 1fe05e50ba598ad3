//! Parser for the members of an audit record, by kind.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use merkle::EntryDigest;
use serde_json::Value;

use super::audit::{
    Advised, AuditKind, Confirmation, Decided, Denials, Outcome, Status, ToolEvent, Tools, UNBOUND,
};
use super::audit_rule::AuditRule;
use super::members::{METHODS, Members, Rule, TRIGGERS, is_score};
use super::verdict::Served;
use crate::aer::{NO_SESSION, is_aer_id};
use crate::limits::{MAX_IDENTIFIER, MAX_INTEGER, MAX_METERS};
use crate::violation::{Violation, quote};
use crate::vrf::VerifiedAt;

/// Members of all kinds.
const COMMON: [&str; 6] = ["version", "kind", "gateway", "stream", "seq", "at"];
/// Further members of a commitment, amendment or decision.
const DECIDED: [&str; 14] = [
    "agent_id",
    "agent_proven_by",
    "asserted_client",
    "tool",
    "verdict",
    "verification",
    "policy_digest",
    "meters",
    "committed",
    "aer_id",
    "binding",
    "advised",
    "confirmation",
    "canon",
];
/// Members of a confirmation by a client.
const BY_CLIENT: [&str; 2] = ["by", "answer"];
/// Members of a confirmation by an approver.
const BY_APPROVER: [&str; 6] = ["by", "answer", "approver", "kid", "question", "approval"];
/// The values of `agent_proven_by`.
const PROVEN_BY: [&str; 5] = ["asserted", "session", "token", "certificate", "key"];
/// Further members of an outcome.
const OUTCOME: [&str; 5] = ["backLink", "status", "settled", "committed", "canon"];
/// Further members of a record of denials.
const DENIALS: [&str; 2] = ["since", "denied"];
/// Further members of a record of tools, and the members of each tool.
const TOOLS: [&str; 4] = ["route", "event", "tools", "more"];
const TOOL: [&str; 3] = ["tool", "was", "is"];
/// Maximum number of tools in one record.
const MAX_TOOLS: usize = 64;
/// Members of a verification.
const VERIFICATION: [&str; 7] =
    ["checks", "method", "risk_score", "semantic_invoked", "semantic_trigger", "confidence", "reason"];
/// Members of `committed` in a commitment, amendment or decision.
const DECIDED_COMMITS: [&str; 7] =
    ["goal", "rationale", "expected_effect", "arguments", "effective_commitment", "principal", "verdict"];
/// Members of `committed` in an outcome.
const OUTCOME_COMMITS: [&str; 1] = ["result"];
/// Maximum length in characters of an identifier, and of a meter's name.
const MAX_NAME: usize = 256;
/// Maximum length in characters of a code, and of a meter's value.
const MAX_CODE: usize = 64;
const MEMBER: Rule = |at, detail| AuditRule::Member.in_payload(at, detail);
const VERIFICATION_RULE: Rule = |at, detail| AuditRule::Verification.in_payload(at, detail);

/// Parses the record as an object of version 1.
pub(super) fn top(document: &Value) -> Result<Members<'_>, Violation> {
    let top = Members::of(document, "", MEMBER)?;
    one_of(&top, "version", AuditRule::Version, &["1"])?;
    Ok(top)
}

/// A parser for the members of one kind.
type ReadKind = fn(&Members<'_>) -> Result<AuditKind, Violation>;

pub(super) fn kind(top: &Members<'_>) -> Result<AuditKind, Violation> {
    let word = top.text("kind")?;
    let (members, read): (&[&str], ReadKind) = match word {
        "commitment" => (&DECIDED, |top| decided(top).map(AuditKind::Commitment)),
        "amendment" => (&DECIDED, |top| decided(top).map(AuditKind::Amendment)),
        "decision" => (&DECIDED, |top| decided(top).map(AuditKind::Decision)),
        "outcome" => (&OUTCOME, |top| outcome(top).map(AuditKind::Outcome)),
        "denials" => (&DENIALS, |top| denials(top).map(AuditKind::Denials)),
        "tools" => (&TOOLS, |top| tools(top).map(AuditKind::Tools)),
        "closed" => (&[], |_| Ok(AuditKind::Closed)),
        other => {
            let needed = "commitment, amendment, decision, outcome, denials, tools or closed";
            return Err(
                AuditRule::Kind.in_payload("/kind", format!("found {}, needed {needed}", quote(other)))
            );
        }
    };
    closed(top, &[&COMMON, members])?;
    read(top)
}

/// Rejects members that are not listed.
fn closed(members: &Members<'_>, lists: &[&[&str]]) -> Result<(), Violation> {
    match members.names().find(|name| !lists.iter().any(|list| list.contains(name))) {
        None => Ok(()),
        Some(name) => {
            let detail = format!("{} is no member of this object", quote(name));
            Err(AuditRule::UnknownMember.in_payload(members.pointer(name), detail))
        }
    }
}

fn decided(top: &Members<'_>) -> Result<Decided, Violation> {
    check_verification(&top.object("verification")?)?;
    check_policy_digest(top)?;
    check_meters(top, "meters")?;
    check_committed(top, &DECIDED_COMMITS)?;
    check_binding(top)?;
    check_canon(top)?;
    let word = one_of(top, "verdict", AuditRule::Verdict, &Served::ALL.map(Served::as_str))?;
    let verdict = Served::from_word(word).ok_or_else(|| top.broken(MEMBER, "verdict", "no verdict"))?;
    let optional = |name| top.get(name).map(|_| identifier(top, name)).transpose();
    Ok(Decided {
        verdict,
        tool: optional("tool")?,
        agent_id: optional("agent_id")?,
        asserted_client: optional("asserted_client")?,
        agent_proven_by: proven_by(top)?,
        aer_id: top.get("aer_id").map(|_| aer_id(top)).transpose()?,
        advised: advised(top)?,
        confirmation: confirmation(top)?,
    })
}

/// Parses the verdict of rules that were not enforced.
fn advised(top: &Members<'_>) -> Result<Option<Advised>, Violation> {
    let Some(advised) = top.optional_object("advised")? else { return Ok(None) };
    closed(&advised, &[&["verdict", "reason"]])?;
    let word = one_of(&advised, "verdict", AuditRule::Verdict, &Served::ALL.map(Served::as_str))?;
    let verdict = Served::from_word(word).ok_or_else(|| advised.broken(MEMBER, "verdict", "no verdict"))?;
    let reason = advised.optional_text("reason")?.map(str::to_owned);
    if let Some(reason) = &reason {
        check_code(reason, advised.pointer("reason"))?;
    }
    Ok(Some(Advised { verdict, reason }))
}

/// Parses the answer to a question about the message.
fn confirmation(top: &Members<'_>) -> Result<Option<Confirmation>, Violation> {
    let Some(confirmation) = top.optional_object("confirmation")? else { return Ok(None) };
    let by = one_of(&confirmation, "by", AuditRule::Member, &["client", "approver"])?;
    let is_confirmed =
        one_of(&confirmation, "answer", AuditRule::Member, &["confirmed", "declined"])? == "confirmed";
    if by == "client" {
        closed(&confirmation, &[&BY_CLIENT])?;
        return Ok(Some(Confirmation { is_confirmed, approver: None }));
    }
    closed(&confirmation, &[&BY_APPROVER])?;
    for name in ["kid", "question"] {
        identifier(&confirmation, name)?;
    }
    if !is_tagged_hex(confirmation.text("approval")?, "sha256:") {
        return Err(confirmation.broken(
            MEMBER,
            "approval",
            "\"sha256:\" and 64 lower-case hex digits are needed here",
        ));
    }
    Ok(Some(Confirmation { is_confirmed, approver: Some(identifier(&confirmation, "approver")?) }))
}

/// Parses `agent_proven_by`, which requires an `agent_id`.
fn proven_by(top: &Members<'_>) -> Result<Option<String>, Violation> {
    if top.get("agent_proven_by").is_none() {
        return Ok(None);
    }
    let word = one_of(top, "agent_proven_by", AuditRule::Identifier, &PROVEN_BY)?;
    match top.get("agent_id") {
        Some(_) => Ok(Some(word.to_owned())),
        None => Err(top.broken(MEMBER, "agent_proven_by", "there is no agent_id that could be proven")),
    }
}

/// Parses the identifier of the AgentROA receipt for the same call.
fn aer_id(top: &Members<'_>) -> Result<String, Violation> {
    let text = top.text("aer_id")?;
    match is_aer_id(text) {
        true => Ok(text.to_owned()),
        false => {
            let detail = format!("found {}, needed \"aer:\" and 16 lower-case hex digits", quote(text));
            Err(AuditRule::Identifier.in_payload(top.pointer("aer_id"), detail))
        }
    }
}

fn outcome(top: &Members<'_>) -> Result<Outcome, Violation> {
    check_meters(top, "settled")?;
    if top.get("committed").is_some() {
        check_committed(top, &OUTCOME_COMMITS)?;
    }
    check_canon(top)?;
    let word = one_of(top, "status", AuditRule::Status, &Status::ALL.map(Status::as_str))?;
    let status = Status::ALL.into_iter().find(|status| status.as_str() == word);
    Ok(Outcome {
        decision: back_link(top)?,
        status: status.ok_or_else(|| top.broken(MEMBER, "status", "no status"))?,
    })
}

/// Parses the period and the numbers of denied messages.
fn denials(top: &Members<'_>) -> Result<Denials, Violation> {
    let counts = top.object("denied")?;
    let mut denied = BTreeMap::new();
    for reason in counts.names() {
        check_code(reason, counts.pointer(reason))?;
        let count = counts.required(reason)?.as_u64().filter(|count| (1..=MAX_INTEGER).contains(count));
        let needed = || counts.broken(MEMBER, reason, "an integer from 1 to 2^53-1 is needed here");
        denied.insert(reason.to_owned(), count.ok_or_else(needed)?);
    }
    Ok(Denials { since: time(top, "since")?, denied })
}

/// Parses the changed or approved tools, each with the digest of its definition.
fn tools(top: &Members<'_>) -> Result<Tools, Violation> {
    let Value::Array(listed) = top.required("tools")? else {
        return Err(top.broken(MEMBER, "tools", "a list is needed here"));
    };
    if !(1..=MAX_TOOLS).contains(&listed.len()) {
        return Err(top.broken(MEMBER, "tools", format!("1 to {MAX_TOOLS} tools are needed here")));
    }
    let mut names = Vec::new();
    for (i, tool) in listed.iter().enumerate() {
        let tool = Members::of(tool, format!("{}/{i}", top.pointer("tools")), MEMBER)?;
        closed(&tool, &[&TOOL])?;
        check_digest(&tool, "is")?;
        if tool.get("was").is_some() {
            check_digest(&tool, "was")?;
        }
        if tool.get("tool").is_some() {
            names.push(identifier(&tool, "tool")?);
        }
    }
    let more = match top.get("more") {
        None => 0,
        Some(more) => more
            .as_u64()
            .filter(|more| (1..=MAX_INTEGER).contains(more))
            .ok_or_else(|| top.broken(MEMBER, "more", "an integer from 1 to 2^53-1 is needed here"))?,
    };
    let word = one_of(top, "event", AuditRule::Member, &ToolEvent::ALL.map(ToolEvent::as_str))?;
    let event = ToolEvent::ALL.into_iter().find(|event| event.as_str() == word);
    Ok(Tools {
        route: identifier(top, "route")?,
        event: event.ok_or_else(|| top.broken(MEMBER, "event", "no event"))?,
        count: u64::try_from(listed.len()).unwrap_or(u64::MAX).saturating_add(more),
        tools: names,
    })
}

fn check_digest(members: &Members<'_>, name: &str) -> Result<(), Violation> {
    match is_tagged_hex(members.text(name)?, "sha256:") {
        true => Ok(()),
        false => {
            let detail = "\"sha256:\" and 64 lower-case hex digits are needed here";
            Err(members.broken(MEMBER, name, detail))
        }
    }
}

fn one_of<'a>(
    members: &Members<'a>,
    name: &str,
    rule: AuditRule,
    known: &[&str],
) -> Result<&'a str, Violation> {
    let word = members.text(name)?;
    match known.contains(&word) {
        true => Ok(word),
        false => {
            let detail = format!("found {}, needed {}", quote(word), known.join(" or "));
            Err(rule.in_payload(members.pointer(name), detail))
        }
    }
}

fn identifier(members: &Members<'_>, name: &str) -> Result<String, Violation> {
    let text = members.text(name)?;
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => {
            let detail = "1 to 256 characters are needed here, none of them a control character";
            Err(AuditRule::Identifier.in_payload(members.pointer(name), detail))
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().nth(MAX_NAME).is_none() && !text.chars().any(char::is_control)
}

/// Parses a member that equals a claim of the statement.
pub(super) fn claim(members: &Members<'_>, name: &str) -> Result<String, Violation> {
    let text = members.text(name)?;
    match text.is_empty() || text.chars().nth(MAX_IDENTIFIER).is_some() {
        false => Ok(text.to_owned()),
        true => {
            let detail = format!("1 to {MAX_IDENTIFIER} characters are needed here");
            Err(AuditRule::Identifier.in_payload(members.pointer(name), detail))
        }
    }
}

/// Parses the stream: a session, or `unbound:` and an instance of the gateway. The placeholder for "no session" is
/// rejected, because it would combine the records of unrelated callers.
pub(super) fn stream(top: &Members<'_>) -> Result<String, Violation> {
    let stream = claim(top, "stream")?;
    match stream == NO_SESSION || stream == UNBOUND {
        false => Ok(stream),
        true => {
            let detail = format!("found {}, needed a session, or {UNBOUND} and an instance", quote(&stream));
            Err(AuditRule::Stream.in_payload("/stream", detail))
        }
    }
}

pub(super) fn sequence(top: &Members<'_>) -> Result<u64, Violation> {
    let seq = top.required("seq")?.as_u64().filter(|seq| *seq <= MAX_INTEGER);
    seq.ok_or_else(|| AuditRule::Sequence.in_payload("/seq", "an integer from 0 to 2^53-1 is needed here"))
}

pub(super) fn at(top: &Members<'_>) -> Result<u64, Violation> {
    time(top, "at")
}

fn time(top: &Members<'_>, name: &str) -> Result<u64, Violation> {
    let text = top.text(name)?;
    VerifiedAt::parse(text).filter(|at| !at.numeric_offset).map(|at| at.unix_seconds).ok_or_else(|| {
        let detail = format!("found {}, needed YYYY-MM-DDThh:mm:ssZ, a time that exists", quote(text));
        AuditRule::At.in_payload(top.pointer(name), detail)
    })
}

/// Checks a verification as in a wire Verdict, except that texts must be codes (reading V-40).
fn check_verification(verification: &Members<'_>) -> Result<(), Violation> {
    closed(verification, &[&VERIFICATION])?;
    for (i, check) in verification.texts("checks")?.into_iter().enumerate() {
        check_code(check, format!("/verification/checks/{i}"))?;
    }
    if let Some(reason) = verification.optional_text("reason")? {
        check_code(reason, verification.pointer("reason"))?;
    }
    one_of(verification, "method", AuditRule::Verification, &METHODS)?;
    verification.optional_bool("semantic_invoked")?;
    if verification.get("semantic_trigger").is_some() {
        one_of(verification, "semantic_trigger", AuditRule::Verification, &TRIGGERS)?;
    }
    for name in ["risk_score", "confidence"] {
        if verification.optional_number(name)?.is_some_and(|score| !is_score(score)) {
            return Err(verification.broken(VERIFICATION_RULE, name, "a number from 0 to 1 is needed here"));
        }
    }
    Ok(())
}

fn check_code(text: &str, at: String) -> Result<(), Violation> {
    match is_code(text) {
        true => Ok(()),
        false => {
            let detail = format!("{} is no code: letters, digits and _ . : + -, at most 64", quote(text));
            Err(AuditRule::Code.in_payload(at, detail))
        }
    }
}

/// Returns whether a text is a code, which is too short and restricted to repeat a caller's text.
pub(crate) fn is_code(text: &str) -> bool {
    let in_code = |b: u8| b.is_ascii_alphanumeric() || b"_.:+-".contains(&b);
    (1..=MAX_CODE).contains(&text.len()) && text.bytes().all(in_code)
}

fn check_policy_digest(top: &Members<'_>) -> Result<(), Violation> {
    match is_tagged_hex(top.text("policy_digest")?, "sha256:") {
        true => Ok(()),
        false => {
            let detail = "\"sha256:\" and 64 lower-case hex digits are needed here";
            Err(AuditRule::PolicyDigest.in_payload("/policy_digest", detail))
        }
    }
}

/// Returns whether a text is a tag followed by 32 bytes in lower-case hexadecimal.
fn is_tagged_hex(text: &str, tag: &str) -> bool {
    text.strip_prefix(tag)
        .and_then(|hex| HEXLOWER.decode(hex.as_bytes()).ok())
        .is_some_and(|bytes| bytes.len() == 32)
}

fn check_meters(top: &Members<'_>, name: &str) -> Result<(), Violation> {
    let meters = top.object(name)?;
    if meters.len() > MAX_METERS {
        let detail = format!("more than {MAX_METERS} meters");
        return Err(AuditRule::Meter.in_payload(top.pointer(name), detail));
    }
    for meter in meters.names() {
        if !is_name(meter) || !is_decimal(meters.text(meter)?) {
            let detail = "a decimal number of at least 0 is needed here, as text: digits, a point, digits";
            return Err(AuditRule::Meter.in_payload(meters.pointer(meter), detail));
        }
    }
    Ok(())
}

/// Returns whether a text is a decimal number without leading zeros, with an optional fraction.
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) =
        text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    text.len() <= MAX_CODE
        && digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
}

fn check_committed(top: &Members<'_>, known: &[&str]) -> Result<(), Violation> {
    let committed = top.object("committed")?;
    for name in committed.names() {
        if !known.contains(&name) {
            let detail =
                format!("this kind of record commits to {}, not to {}", known.join(", "), quote(name));
            return Err(AuditRule::Commitment.in_payload(committed.pointer(name), detail));
        }
        check_commitment(&committed, name)?;
    }
    Ok(())
}

fn check_commitment(members: &Members<'_>, name: &str) -> Result<(), Violation> {
    match is_tagged_hex(members.text(name)?, "hmac-sha256:") {
        true => Ok(()),
        false => {
            let detail = "\"hmac-sha256:\" and 64 lower-case hex digits are needed here";
            Err(AuditRule::Commitment.in_payload(members.pointer(name), detail))
        }
    }
}

/// Checks `binding`: the members of the Verdict's JWS header that bind it to the call (reading V-25).
fn check_binding(top: &Members<'_>) -> Result<(), Violation> {
    let Some(binding) = top.optional_object("binding")? else { return Ok(()) };
    closed(&binding, &[&["iat", "jti", "req"]])?;
    if binding.get("iat").is_some_and(|iat| iat.as_u64().is_none_or(|iat| iat > MAX_INTEGER)) {
        return Err(binding.broken(MEMBER, "iat", "whole seconds since 1970 are needed here"));
    }
    if binding.get("jti").is_some() {
        identifier(&binding, "jti")?;
    }
    match binding.get("req") {
        Some(_) => check_commitment(&binding, "req"),
        None => Ok(()),
    }
}

fn check_canon(top: &Members<'_>) -> Result<(), Violation> {
    match top.get("canon") {
        Some(_) => one_of(top, "canon", AuditRule::Canon, &["raw"]).map(drop),
        None => Ok(()),
    }
}

fn back_link(top: &Members<'_>) -> Result<EntryDigest, Violation> {
    let text = top.text("backLink")?;
    let lower = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let digest = if lower { text.parse().ok() } else { None };
    digest.ok_or_else(|| {
        AuditRule::BackLink.in_payload("/backLink", "an entry ID is needed here: 64 lower-case hex digits")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meters_are_decimals_as_people_write_them() {
        for good in ["0", "0.0", "1", "10.25", "0.000000000001", "123456789012345678901234567890"] {
            assert!(is_decimal(good), "{good}");
        }
        for bad in ["", ".", "1.", ".5", "01", "00", "-1", "+1", "1e3", "1,5", "0x1", "NaN", "１"] {
            assert!(!is_decimal(bad), "{bad}");
        }
    }
}
