//! Parser for the members of an audit record, by kind.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use jose::BrokenRule;
use jose::json;
use jose::members::{JsonRule, Rule, quote};
use merkle::EntryDigest;
use serde_json::Value;

use super::{
    AdvisedVerdict, AnswerWord, AuditKind, AuditRecord, AuditRule, CallStatus, CanonForm, Decided, Denials,
    Outcome, RecordedAnswer, RecordedBinding, RecordedTool, ToolEvent, Tools,
};
use crate::limits::{JSON_DEPTH, MAX_CODE, MAX_INTEGER, MAX_METERS, RECORDED_TOOLS};
use crate::message::{Deadline, NO_SESSION, UNBOUND};
use crate::name::{is_code, is_name};
use crate::verdict::{Method, Trigger, VerdictKind, Verification, score};
use crate::word::read_word;

type Members<'a> = jose::members::Members<'a, AuditRule>;

/// The value of `version`.
pub(super) const VERSION: &str = "1";
/// Maximum length in characters of `gateway` and `stream`, which equal claims of the statement.
const MAX_CLAIM: usize = 8192;
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
const PROVEN_BY: [&str; 6] = ["asserted", "session", "token", "certificate", "key", "operator"];
/// Further members of an outcome.
const OUTCOME: [&str; 5] = ["backLink", "status", "settled", "committed", "canon"];
/// Further members of a record of denials.
const DENIALS: [&str; 2] = ["since", "denied"];
/// Further members of a record of tools, and the members of each tool.
const TOOLS: [&str; 4] = ["route", "event", "tools", "more"];
const TOOL: [&str; 3] = ["tool", "was", "is"];
/// Members of a verification.
const VERIFICATION: [&str; 7] =
    ["checks", "method", "risk_score", "semantic_invoked", "semantic_trigger", "confidence", "reason"];
/// Members of `committed` in a commitment, amendment or decision.
const DECIDED_COMMITS: [&str; 8] = [
    "goal",
    "rationale",
    "expected_effect",
    "arguments",
    "effective_commitment",
    "principal",
    "verdict",
    "ai_invocation",
];
/// Members of `committed` in an outcome.
const OUTCOME_COMMITS: [&str; 1] = ["result"];

/// Parses a payload into the record and its JSON.
pub(super) fn record(payload: &[u8]) -> Result<(AuditRecord, Value), BrokenRule> {
    let limits = json::Limits { depth: JSON_DEPTH, ..json::Limits::default() };
    let document = json::parse_strict(payload, limits).map_err(|error| AuditRule::not_json(&error))?;
    let whole = |rule: AuditRule, detail: &str| rule.broken(String::new(), detail.to_owned());
    if !document.is_object() {
        return Err(whole(AuditRule::Json, "the payload is not an object"));
    }
    if jose::jcs::canonical(&document) != payload {
        return Err(whole(AuditRule::Canonical, "the JSON is not in its canonical form (RFC 8785)"));
    }
    let top = Members::of(&document, "")?;
    top.word(AuditRule::Version, "version", &[VERSION])?;
    let kind = kind(&top)?;
    let record = AuditRecord {
        gateway: claim(&top, "gateway")?,
        stream: stream(&top)?,
        seq: sequence(&top)?,
        at: time(&top, "at")?,
        kind,
    };
    Ok((record, document))
}

/// A parser for the members of one kind.
type ReadKind = fn(&Members<'_>) -> Result<AuditKind, BrokenRule>;

fn kind(top: &Members<'_>) -> Result<AuditKind, BrokenRule> {
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
            return Err(top.unfit(AuditRule::Kind, "kind", other, needed));
        }
    };
    closed(top, &[&COMMON, members])?;
    read(top)
}

/// Rejects members that are not listed.
fn closed(members: &Members<'_>, lists: &[&[&str]]) -> Result<(), BrokenRule> {
    match members.names().find(|name| !lists.iter().any(|list| list.contains(name))) {
        None => Ok(()),
        Some(name) => {
            let detail = format!("{} is not a member of this object", quote(name));
            Err(members.broken(AuditRule::UnknownMember, name, detail))
        }
    }
}

fn verdict(members: &Members<'_>) -> Result<VerdictKind, BrokenRule> {
    read_word(members, AuditRule::Verdict, "verdict", (&VerdictKind::WORDS, VerdictKind::from_word))
}

fn decided(top: &Members<'_>) -> Result<Box<Decided>, BrokenRule> {
    Ok(Box::new(Decided {
        verification: verification(&top.object("verification")?)?,
        policy_digest: policy_digest(top)?,
        meters: meters(top, "meters")?,
        committed: committed(top, &DECIDED_COMMITS)?,
        binding: binding(top)?,
        canon: canon(top)?,
        verdict: verdict(top)?,
        tool: top.optional("tool", identifier)?,
        agent_id: top.optional("agent_id", identifier)?,
        asserted_client: top.optional("asserted_client", identifier)?,
        agent_proven_by: proven_by(top)?,
        aer_id: top.optional("aer_id", aer_id)?,
        advised: advised(top)?,
        confirmation: confirmation(top)?,
    }))
}

/// Parses the verdict of rules that were not enforced.
fn advised(top: &Members<'_>) -> Result<Option<AdvisedVerdict>, BrokenRule> {
    let Some(advised) = top.optional_object("advised")? else { return Ok(None) };
    closed(&advised, &[&["verdict", "reason"]])?;
    Ok(Some(AdvisedVerdict { verdict: verdict(&advised)?, reason: advised.optional("reason", code)? }))
}

/// Parses the answer to a question about the message.
fn confirmation(top: &Members<'_>) -> Result<Option<RecordedAnswer>, BrokenRule> {
    let Some(members) = top.optional_object("confirmation")? else { return Ok(None) };
    let by = members.word(AuditRule::Member, "by", &["client", "approver"])?;
    let answer =
        read_word(&members, AuditRule::Member, "answer", (&AnswerWord::WORDS, AnswerWord::from_word))?;
    if by == "client" {
        closed(&members, &[&BY_CLIENT])?;
        return Ok(Some(RecordedAnswer::Client { answer }));
    }
    closed(&members, &[&BY_APPROVER])?;
    Ok(Some(RecordedAnswer::Approver {
        answer,
        kid: identifier(&members, "kid")?,
        question: identifier(&members, "question")?,
        approval: digest(&members, AuditRule::Member, "approval")?,
        approver: identifier(&members, "approver")?,
    }))
}

/// Parses `agent_proven_by`, which requires an `agent_id`.
fn proven_by(top: &Members<'_>) -> Result<Option<String>, BrokenRule> {
    let Some(word) =
        top.optional("agent_proven_by", |top, name| top.word(AuditRule::Identifier, name, &PROVEN_BY))?
    else {
        return Ok(None);
    };
    match top.has("agent_id") {
        true => Ok(Some(word.to_owned())),
        false => {
            let detail = "there is no agent_id that could be proven";
            Err(top.broken(AuditRule::Member, "agent_proven_by", detail))
        }
    }
}

/// Parses the identifier of the AgentROA receipt for the same call.
fn aer_id(top: &Members<'_>, name: &str) -> Result<String, BrokenRule> {
    let text = top.text(name)?;
    let is_lower_hex = |digits: &str| {
        digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    match text.strip_prefix("aer:").is_some_and(is_lower_hex) {
        true => Ok(text.to_owned()),
        false => Err(top.unfit(AuditRule::Identifier, name, text, "\"aer:\" and 16 lower-case hex digits")),
    }
}

fn outcome(top: &Members<'_>) -> Result<Outcome, BrokenRule> {
    Ok(Outcome {
        settled: meters(top, "settled")?,
        committed: top.optional("committed", |top, _| committed(top, &OUTCOME_COMMITS))?,
        canon: canon(top)?,
        status: read_word(top, AuditRule::Status, "status", (&CallStatus::WORDS, CallStatus::from_word))?,
        decision: back_link(top)?,
    })
}

/// Parses the period and the numbers of denied messages.
fn denials(top: &Members<'_>) -> Result<Denials, BrokenRule> {
    let counts = top.object("denied")?;
    let mut denied = BTreeMap::new();
    for reason in counts.names() {
        check_code(reason, counts.pointer(reason))?;
        denied.insert(reason.to_owned(), positive(&counts, reason)?);
    }
    Ok(Denials { since: time(top, "since")?, denied })
}

fn positive(members: &Members<'_>, name: &str) -> Result<u64, BrokenRule> {
    let number = members.required(name)?.as_u64().filter(|number| (1..=MAX_INTEGER).contains(number));
    number
        .ok_or_else(|| members.broken(AuditRule::Member, name, "an integer from 1 to 2^53-1 is needed here"))
}

/// Parses the changed or approved tools, each with the digest of its definition.
fn tools(top: &Members<'_>) -> Result<Tools, BrokenRule> {
    let Value::Array(listed) = top.required("tools")? else {
        return Err(top.broken(AuditRule::Member, "tools", "a list is needed here"));
    };
    if !(1..=RECORDED_TOOLS).contains(&listed.len()) {
        let detail = format!("1 to {RECORDED_TOOLS} tools are needed here");
        return Err(top.broken(AuditRule::Member, "tools", detail));
    }
    let tool = |(i, tool)| {
        let tool = Members::of(tool, format!("{}/{i}", top.pointer("tools")))?;
        closed(&tool, &[&TOOL])?;
        let digest = |members: &Members<'_>, name: &str| digest(members, AuditRule::Member, name);
        Ok(RecordedTool {
            is: digest(&tool, "is")?,
            was: tool.optional("was", digest)?,
            tool: tool.optional("tool", identifier)?,
        })
    };
    Ok(Tools {
        tools: listed.iter().enumerate().map(tool).collect::<Result<_, _>>()?,
        more: top.optional("more", positive)?,
        event: read_word(top, AuditRule::Member, "event", (&ToolEvent::WORDS, ToolEvent::from_word))?,
        route: identifier(top, "route")?,
    })
}

fn digest(members: &Members<'_>, rule: AuditRule, name: &str) -> Result<String, BrokenRule> {
    tagged_hex(members, rule, name, "sha256:")
}

/// Parses a tag followed by 32 bytes in lower-case hexadecimal.
fn tagged_hex(members: &Members<'_>, rule: AuditRule, name: &str, tag: &str) -> Result<String, BrokenRule> {
    let text = members.text(name)?;
    let hex = text.strip_prefix(tag).and_then(|hex| HEXLOWER.decode(hex.as_bytes()).ok());
    match hex.is_some_and(|bytes| bytes.len() == 32) {
        true => Ok(text.to_owned()),
        false => {
            let detail = format!("\"{tag}\" and 64 lower-case hex digits are needed here");
            Err(members.broken(rule, name, detail))
        }
    }
}

fn identifier(members: &Members<'_>, name: &str) -> Result<String, BrokenRule> {
    let text = members.text(name)?;
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => {
            let detail = "1 to 256 characters are needed here, none of them a control character";
            Err(members.broken(AuditRule::Identifier, name, detail))
        }
    }
}

/// Parses a member that equals a claim of the statement.
fn claim(members: &Members<'_>, name: &str) -> Result<String, BrokenRule> {
    let text = members.text(name)?;
    match text.is_empty() || text.chars().nth(MAX_CLAIM).is_some() {
        false => Ok(text.to_owned()),
        true => {
            let detail = format!("1 to {MAX_CLAIM} characters are needed here");
            Err(members.broken(AuditRule::Identifier, name, detail))
        }
    }
}

/// Parses the stream: a session, or `unbound:` and an instance of the gateway. The placeholder for "no session" is
/// rejected, because it would combine the records of unrelated callers.
fn stream(top: &Members<'_>) -> Result<String, BrokenRule> {
    let stream = claim(top, "stream")?;
    match stream == NO_SESSION || stream == UNBOUND {
        false => Ok(stream),
        true => {
            let needed = format!("a session, or {UNBOUND} and an instance");
            Err(top.unfit(AuditRule::Stream, "stream", &stream, &needed))
        }
    }
}

fn sequence(top: &Members<'_>) -> Result<u64, BrokenRule> {
    let seq = top.required("seq")?.as_u64().filter(|seq| *seq <= MAX_INTEGER);
    seq.ok_or_else(|| top.broken(AuditRule::Sequence, "seq", "an integer from 0 to 2^53-1 is needed here"))
}

fn time(top: &Members<'_>, name: &str) -> Result<u64, BrokenRule> {
    let text = top.text(name)?;
    unix_seconds(text)
        .ok_or_else(|| top.unfit(AuditRule::At, name, text, "YYYY-MM-DDThh:mm:ssZ, a time that exists"))
}

/// Parses `YYYY-MM-DDThh:mm:ss[.f]Z` from 1970 on, with at most nine digits of a fraction. The second 60 is rejected,
/// because Unix time does not represent it.
fn unix_seconds(text: &str) -> Option<u64> {
    let at = Deadline::parse(text).ok()?.at();
    let form = text.len() <= 30 && text.get(10..11) == Some("T") && text.ends_with('Z');
    let exists = text.get(17..19) != Some("60") && at >= Timestamp::UNIX_EPOCH;
    (form && exists).then(|| u64::try_from(at.as_second()).ok()).flatten()
}

/// Parses a verification as in a wire Verdict, except that texts must be codes (reading V-40).
fn verification(members: &Members<'_>) -> Result<Verification<String>, BrokenRule> {
    const RULE: AuditRule = AuditRule::Verification;
    closed(members, &[&VERIFICATION])?;
    let checks = members.texts("checks")?;
    for (i, check) in checks.iter().enumerate() {
        check_code(check, format!("/verification/checks/{i}"))?;
    }
    Ok(Verification {
        checks: checks.into_iter().map(str::to_owned).collect(),
        reason: members.optional("reason", code)?,
        method: read_word(members, RULE, "method", (&Method::WORDS, Method::from_word))?,
        semantic_invoked: members.optional_bool("semantic_invoked")?,
        semantic_trigger: members.optional("semantic_trigger", |members, name| {
            read_word(members, RULE, name, (&Trigger::WORDS, Trigger::from_word))
        })?,
        risk_score: score(members, RULE, "risk_score")?,
        confidence: score(members, RULE, "confidence")?,
    })
}

fn code(members: &Members<'_>, name: &str) -> Result<String, BrokenRule> {
    let text = members.text(name)?;
    check_code(text, members.pointer(name)).map(|()| text.to_owned())
}

fn check_code(text: &str, at: String) -> Result<(), BrokenRule> {
    match is_code(text) {
        true => Ok(()),
        false => {
            let detail = format!("{} is not a code: letters, digits and _ . : + -, at most 64", quote(text));
            Err(AuditRule::Code.broken(at, detail))
        }
    }
}

fn policy_digest(top: &Members<'_>) -> Result<String, BrokenRule> {
    digest(top, AuditRule::PolicyDigest, "policy_digest")
}

fn meters(top: &Members<'_>, name: &str) -> Result<BTreeMap<String, String>, BrokenRule> {
    let meters = top.object(name)?;
    if meters.count() > MAX_METERS {
        return Err(top.broken(AuditRule::Meter, name, format!("more than {MAX_METERS} meters")));
    }
    let amount = |meter: &str| {
        if !is_name(meter) || !is_decimal(meters.text(meter)?) {
            let detail = "a decimal number of at least 0 is needed here, as text: digits, a point, digits";
            return Err(meters.broken(AuditRule::Meter, meter, detail));
        }
        Ok((meter.to_owned(), meters.text(meter)?.to_owned()))
    };
    meters.names().map(amount).collect()
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

fn committed(top: &Members<'_>, known: &[&str]) -> Result<BTreeMap<String, String>, BrokenRule> {
    let committed = top.object("committed")?;
    let commit = |name: &str| {
        if !known.contains(&name) {
            let detail =
                format!("this kind of record commits to {}, not to {}", known.join(", "), quote(name));
            return Err(committed.broken(AuditRule::Commitment, name, detail));
        }
        Ok((name.to_owned(), commitment(&committed, name)?))
    };
    committed.names().map(commit).collect()
}

fn commitment(members: &Members<'_>, name: &str) -> Result<String, BrokenRule> {
    tagged_hex(members, AuditRule::Commitment, name, "hmac-sha256:")
}

/// Parses `binding`: the members of the Verdict's JWS header that bind it to the call (reading V-25).
fn binding(top: &Members<'_>) -> Result<Option<RecordedBinding>, BrokenRule> {
    let Some(binding) = top.optional_object("binding")? else { return Ok(None) };
    closed(&binding, &[&["iat", "jti", "req"]])?;
    let seconds = |members: &Members<'_>, name: &str| {
        let seconds = members.required(name)?.as_u64().filter(|iat| *iat <= MAX_INTEGER);
        seconds.ok_or_else(|| {
            members.broken(AuditRule::Member, name, "whole seconds since 1970 are needed here")
        })
    };
    Ok(Some(RecordedBinding {
        iat: binding.optional("iat", seconds)?,
        jti: binding.optional("jti", identifier)?,
        req: binding.optional("req", commitment)?,
    }))
}

fn canon(top: &Members<'_>) -> Result<Option<CanonForm>, BrokenRule> {
    top.optional("canon", |top, name| {
        read_word(top, AuditRule::Canon, name, (&CanonForm::WORDS, CanonForm::from_word))
    })
}

fn back_link(top: &Members<'_>) -> Result<EntryDigest, BrokenRule> {
    let text = top.text("backLink")?;
    let lower = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let digest = if lower { text.parse().ok() } else { None };
    digest.ok_or_else(|| {
        let detail = "an entry ID is needed here: 64 lower-case hex digits";
        top.broken(AuditRule::BackLink, "backLink", detail)
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
