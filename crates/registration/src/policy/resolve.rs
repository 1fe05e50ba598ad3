//! Validation of a document (the operator's TOML, or the payload of a policy statement) as a policy.

use std::collections::HashSet;

use scitt::header::{ContentType, Label};
use scitt::x509::{self, RootCertificate};
use scitt::{Algorithm, PublicKey};
use serde_json::Value;

use super::claim::CwtClaim;
use super::index::IndexRules;
use super::log_end::LogEnd;
use super::model::{Anchor, Contents, Issuer, SelfCertified, TypeRule};
use super::required::Required;
use super::{LEAF_RULE, condition, profile};
use crate::bound_key::{bound_key, distinct};
use crate::content_types::{self, is_operator_statement, spell};
use crate::limits::{MAX_HEADERS, MAX_INTEGER, MAX_ORIGIN, MAX_STATEMENT};
use crate::pattern::pattern;
use crate::payload::Encoding;
use crate::profile::HashSetting;
use crate::section::{Mistakes, Notebook, Section, name, number, switch, text, unique};

/// Parses and validates the whole document, and reports all mistakes in it.
pub(super) fn resolve(document: &Value) -> Result<Contents, Mistakes> {
    let notes = Notebook::default();
    let contents = Section::open(document, "", &notes).and_then(|top| contents(top, &notes));
    if let Some(contents) = &contents {
        check_together(contents, &notes);
    }
    notes.close(contents)
}

fn contents(mut top: Section<'_>, notes: &Notebook) -> Option<Contents> {
    let iss = top.required("iss", name);
    let origin = top.required("origin", origin);
    let revision = top.optional("revision", number);
    top.optional("leaf", leaf_rule);
    let operators = top.list("operator", |value, at| bound_key(value, at, notes));
    if top.is_empty_list("operator") {
        top.note("operator", "a policy needs an operator key: without one no later policy could follow");
    }
    let required = top
        .optional("operator_actions", Ok)
        .map_or(Some(Required::ONE), |value| required(Section::open(value, "operator_actions", notes)?));
    let log_end = top
        .optional("log", Ok)
        .map_or(Some(LogEnd::NEVER), |value| Some(log_end(Section::open(value, "log", notes)?)));
    let index = top
        .optional("index", Ok)
        .map_or(Some(None), |value| IndexRules::read(Section::open(value, "index", notes)?).map(Some));
    let issuers = top.list("issuer", |value, at| issuer(value, at, notes));
    let (did_key, did_jwk) = dids(&mut top, notes);
    let anchors = top.list("anchor", |value, at| anchor(value, at, notes));
    let types = top.list("type", |value, at| type_rule(value, at, notes));
    let revision = revision.unwrap_or(0);
    top.close();
    Some(Contents {
        iss: iss?,
        origin: origin?,
        revision,
        operators,
        required: required?,
        log_end: log_end?,
        index: index?,
        issuers,
        did_key,
        did_jwk,
        anchors,
        types,
    })
}

/// Parses the numbers of operators; `required` is the default of those not set.
fn required(mut section: Section<'_>) -> Option<Required> {
    let usual = section.optional("required", number).unwrap_or(1);
    let required = Required {
        policy: section.optional("policy", number).unwrap_or(usual),
        erasure: section.optional("erasure", number).unwrap_or(usual),
        freeze: section.optional("freeze", number).unwrap_or(usual),
        release: section.optional("release", number).unwrap_or(usual),
    };
    for (name, _) in required.named().into_iter().filter(|(_, number)| *number == 0) {
        section.note(name, "at least one operator must sign");
    }
    section.close();
    Some(required)
}

fn log_end(mut section: Section<'_>) -> LogEnd {
    let end = LogEnd {
        max_entries: section.optional("max_entries", at_least_one),
        ends: section.optional("ends", time),
    };
    section.close();
    end
}

fn at_least_one(value: &Value) -> Result<u64, String> {
    match number(value)? {
        0 => Err("must be at least 1".to_owned()),
        number => Ok(number),
    }
}

/// A time of RFC 3339 after 1970, without fractions of a second. In seconds of Unix time.
fn time(value: &Value) -> Result<u64, String> {
    let needed = || "a time in quotes is needed here, e.g. \"2027-01-01T00:00:00Z\"".to_owned();
    let time: jiff::Timestamp = text(value).map_err(|_| needed())?.parse().map_err(|_| needed())?;
    match u64::try_from(time.as_second()) {
        Ok(0) | Err(_) => Err("a time after 1970 is needed here".to_owned()),
        Ok(_) if time.subsec_nanosecond() != 0 => Err("must be a whole second".to_owned()),
        Ok(seconds) => Ok(seconds),
    }
}

/// Parses an origin, which must be valid in checkpoints and their key names (C2SP signed-note, tlog-checkpoint).
fn origin(value: &Value) -> Result<String, String> {
    let origin = name(value)?;
    let odd = origin.contains("://") || origin.ends_with('/') || origin.contains('+');
    if odd || origin.contains(char::is_whitespace) {
        return Err(
            "an origin is a name without scheme, blank, '+' or trailing '/', e.g. \"log.example/2026\""
                .to_owned(),
        );
    }
    match origin.len() {
        0..=MAX_ORIGIN => Ok(origin),
        _ => Err(format!("an origin has at most {MAX_ORIGIN} bytes")),
    }
}

fn leaf_rule(value: &Value) -> Result<(), String> {
    match text(value)? {
        LEAF_RULE => Ok(()),
        other => Err(format!("this release knows one leaf rule, {LEAF_RULE:?}, not {other:?}")),
    }
}

/// Parses a key, alone or in a table with its kid. The default kid is the one in its COSE_Key, or else its RFC 9679
/// thumbprint.
fn issuer(value: &Value, at: &str, notes: &Notebook) -> Option<Issuer> {
    let mut section = Section::open(value, at, notes)?;
    let iss = section.required("iss", name);
    let keys = section.list("keys", |value, at| bound_key(value, at, notes));
    if section.is_empty_list("keys") {
        section.note("keys", "an issuer needs a key");
    }
    if let Some(iss) = iss.as_deref().filter(|iss| iss.starts_with("did:key:") || iss.starts_with("did:jwk:"))
    {
        section.note("iss", format!("{iss} is its own key: list it under `did` instead"));
    }
    section.close();
    Some(Issuer { iss: iss?, keys })
}

fn dids(top: &mut Section<'_>, notes: &Notebook) -> (SelfCertified, SelfCertified) {
    let nobody = SelfCertified::Listed(Vec::new());
    let table = top.optional("did", Ok).and_then(|value| Section::open(value, "did", notes));
    let Some(mut table) = table else { return (nobody.clone(), nobody) };
    let key = table.optional("key", |value| self_certified(value, "did:key:"));
    let jwk = table.optional("jwk", |value| self_certified(value, "did:jwk:"));
    table.close();
    (key.unwrap_or_else(|| nobody.clone()), jwk.unwrap_or(nobody))
}

fn self_certified(value: &Value, method: &str) -> Result<SelfCertified, String> {
    match value {
        Value::String(word) if word == "open" => Ok(SelfCertified::Open),
        Value::Array(items) => {
            items.iter().map(|item| did(item, method)).collect::<Result<_, _>>().map(SelfCertified::Listed)
        }
        _ => Err("\"open\" or a list of DIDs is needed here".to_owned()),
    }
}

fn did(value: &Value, method: &str) -> Result<String, String> {
    let did = text(value)?;
    match PublicKey::from_did(did) {
        Ok(_) if did.starts_with(method) => Ok(did.to_owned()),
        Ok(_) => Err(format!("a {method}… is needed here")),
        Err(error) => Err(format!("{did:?} is not a {method}… that we can use: {error}")),
    }
}

fn anchor(value: &Value, at: &str, notes: &Notebook) -> Option<Anchor> {
    let mut section = Section::open(value, at, notes)?;
    let name = section.required("name", name);
    let roots = section.values("roots", root);
    let san = section.optional("san", switch).unwrap_or(true);
    let issuers = section.values("issuers", pattern);
    let eku = section.optional("eku", oid);
    if section.is_empty_list("roots") {
        section.note("roots", "an anchor needs a root certificate");
    }
    if !san && issuers.is_empty() {
        section.note("issuers", "with `san = false` no issuer can be bound: list some");
    }
    section.close();
    Some(Anchor { name: name?, roots, san, issuers, eku })
}

/// Parses a certificate in PEM, or in DER as base64.
fn root(value: &Value) -> Result<RootCertificate, String> {
    let text = text(value)?.trim();
    let root = match text.starts_with("-----") {
        true => RootCertificate::from_pem(text),
        false => match data_encoding::BASE64.decode(text.as_bytes()) {
            Ok(der) => RootCertificate::from_der(&der),
            Err(_) => return Err("a certificate is needed here: PEM, or DER in base64".to_owned()),
        },
    };
    root.map_err(|error| error.to_string())
}

fn oid(value: &Value) -> Result<String, String> {
    let oid = text(value)?;
    match x509::is_oid(oid) {
        true => Ok(oid.to_owned()),
        false => {
            Err("an object identifier in dotted form is needed here, e.g. \"1.3.6.1.5.5.7.3.3\"".to_owned())
        }
    }
}

fn type_rule(value: &Value, at: &str, notes: &Notebook) -> Option<TypeRule> {
    let mut section = Section::open(value, at, notes)?;
    let content_type = section.required("content_type", content_type);
    let rule_name = section.optional("name", name);
    let issuers = section.values("issuers", pattern);
    let algorithms = section.values("algorithms", algorithm);
    let max_size = section.optional("max_size", max_size);
    let detached = section.optional("detached", switch).unwrap_or(false);
    let hash_envelope = section.optional("hash_envelope", switch).unwrap_or(false);
    let claims = section.values("claims", claim);
    let headers = section.values("headers", label);
    if headers.len() > MAX_HEADERS {
        section.note("headers", format!("more than {MAX_HEADERS} headers"));
    }
    let conditions = condition::read(&mut section, notes);
    let keep_payload = section.optional("keep_payload", switch).unwrap_or(true);
    let retention = section.optional("retention", retention);
    let profile = profile::read(&mut section, content_type.as_ref(), notes);
    match profile.as_dyn().hash_setting() {
        HashSetting::None if hash_envelope => {
            section.note("hash_envelope", "the log reads this content type: a hash says nothing to it");
        }
        HashSetting::Option(mistake) if hash_envelope => section.note("hash_envelope", mistake),
        HashSetting::Type | HashSetting::Option(_) | HashSetting::None => {}
    }
    // A hash may stand for any payload, so there is no record to evaluate.
    let encoding = content_type.as_ref().and_then(ContentType::as_text).and_then(Encoding::of);
    let has_record = !profile.is_opaque() || (encoding.is_some() && !hash_envelope);
    for (number, condition) in conditions.iter().enumerate() {
        if let Some(unknown) = condition.unknown_member(has_record) {
            let why = "which no statement of this type has: the rule would never hold";
            section.note(&format!("rule[{number}].when"), format!("names {unknown}, {why}"));
        }
    }
    section.close();
    let content_type = content_type?;
    let name = rule_name.unwrap_or_else(|| spell(&content_type).into_owned());
    let max_size = max_size.unwrap_or_else(|| profile.as_dyn().default_max_size());
    Some(TypeRule {
        name,
        content_type,
        profile,
        issuers,
        algorithms,
        max_size,
        detached,
        hash_envelope,
        claims,
        headers,
        conditions,
        keep_payload,
        retention,
    })
}

fn content_type(value: &Value) -> Result<ContentType, String> {
    match value {
        Value::Number(_) => number(value).map(ContentType::Id),
        _ => match name(value)? {
            own if is_operator_statement(&own) => {
                Err("statements of the operator are admitted by the operator's keys, never by a type"
                    .to_owned())
            }
            other if other.split_once('/').is_none_or(|(a, b)| a.is_empty() || b.is_empty()) => {
                Err("a media type (\"type/subtype\") or a CoAP content format is needed here".to_owned())
            }
            other => Ok(ContentType::Text(other)),
        },
    }
}

/// Parses a label of a protected header parameter, a number or text.
fn label(value: &Value) -> Result<Label, String> {
    match value {
        Value::Number(number) => number
            .as_i64()
            .filter(|number| number.unsigned_abs() <= MAX_INTEGER)
            .map(Label::Int)
            .ok_or_else(|| "a whole number is needed here".to_owned()),
        _ => name(value).map(Label::Text),
    }
}

fn algorithm(value: &Value) -> Result<Algorithm, String> {
    let name = text(value)?;
    Algorithm::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect();
        format!("{name:?} is not a supported algorithm: {}", known.join(", "))
    })
}

fn max_size(value: &Value) -> Result<u64, String> {
    match at_least_one(value)? {
        size if size > MAX_STATEMENT => Err(format!("at most {MAX_STATEMENT} bytes")),
        size => Ok(size),
    }
}

/// Parses a time span such as "365 days", in days of 24 hours and smaller units or weeks, and returns it in seconds.
fn retention(value: &Value) -> Result<u64, String> {
    let needed = || {
        "a length of time in weeks, days, hours, minutes or seconds is needed here, e.g. \"365 days\""
            .to_owned()
    };
    let span: jiff::Span = text(value)?.parse().map_err(|_| needed())?;
    let length = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| needed())?;
    u64::try_from(length.as_secs()).ok().filter(|seconds| *seconds > 0).ok_or_else(needed)
}

fn claim(value: &Value) -> Result<CwtClaim, String> {
    let name = text(value)?;
    let known = CwtClaim::ALL.iter().find(|(_, known)| *known == name);
    known.map(|(claim, _)| *claim).ok_or_else(|| format!("{name:?} is not one of iat, exp, nbf"))
}

/// Checks the properties that involve several parts of the policy.
fn check_together(policy: &Contents, notes: &Notebook) {
    unique("operator", policy.operators.iter().map(|operator| operator.kid.clone()), "kid", notes);
    unique("issuer", policy.issuers.iter().map(|issuer| issuer.iss.clone()), "iss", notes);
    unique("anchor", policy.anchors.iter().map(|anchor| anchor.name.clone()), "name", notes);
    unique("type", policy.types.iter().map(|rule| rule.name.clone()), "name", notes);
    let spelled = |rule: &TypeRule| spell(&rule.content_type).to_ascii_lowercase();
    unique("type", policy.types.iter().map(spelled), "content_type", notes);
    one_reading_of_json(&policy.types, &spelled, notes);
    check_checking_types(&policy.types, &spelled, notes);
    check_required(policy, notes);
    check_index_keys(policy, notes);
    let operators: HashSet<[u8; 32]> =
        policy.operators.iter().map(|operator| operator.key.thumbprint()).collect();
    for (i, issuer) in policy.issuers.iter().enumerate() {
        unique(&format!("issuer[{i}].keys"), issuer.keys.iter().map(|key| key.kid.clone()), "kid", notes);
        if issuer.keys.iter().any(|bound| operators.contains(&bound.key.thumbprint())) {
            notes.note(
                format!("issuer[{i}].keys"),
                "an operator's key signs policies and nothing else (RFC 9943, section 9.4)",
            );
        }
    }
}

/// Rejects keys of the index that sign other statements, too.
fn check_index_keys(policy: &Contents, notes: &Notebook) {
    let Some(index) = &policy.index else { return };
    unique("index.keys", index.keys.iter().map(|key| key.kid.clone()), "kid", notes);
    let issuers = policy.issuers.iter().flat_map(|issuer| &issuer.keys);
    let others: HashSet<[u8; 32]> =
        policy.operators.iter().chain(issuers).map(|bound| bound.key.thumbprint()).collect();
    if index.keys.iter().any(|bound| others.contains(&bound.key.thumbprint())) {
        notes.note("index.keys", "a key of the index signs its heads and nothing else");
    }
}

/// Rejects numbers of operators that exceed the number of keys, or that fewer operators could lower with a policy.
fn check_required(policy: &Contents, notes: &Notebook) {
    let (required, operators) = (policy.required, distinct(&policy.operators).len() as u64);
    for (name, number) in required.named() {
        let at = format!("operator_actions.{name}");
        // A policy without an operator key is reported as a separate mistake.
        if number > operators.max(1) {
            notes.note(&at, format!("{number} operators are required, and the policy has {operators}"));
        }
        if number > required.policy {
            notes.note(&at, "fewer operators could lower this by a policy: `policy` needs at least as many");
        }
    }
    if required.erasure > 1
        && let Some(i) = policy.types.iter().position(|rule| rule.retention.is_some())
    {
        let why = "the service erases with one signature what is past its retention: set `operator_actions.erasure = 1`";
        notes.note(format!("type[{i}].retention"), why);
    }
}

/// Rejects a content type that is checked under the options of another one which the policy does not admit.
fn check_checking_types(types: &[TypeRule], spelled: &impl Fn(&TypeRule) -> String, notes: &Notebook) {
    for (i, rule) in types.iter().enumerate() {
        let Some(other) = rule.profile.as_dyn().checked_by() else { continue };
        if !types.iter().any(|rule| spelled(rule) == other) {
            let why = format!("this content type needs {other} in the policy, which says whose it is");
            notes.note(format!("type[{i}].content_type"), why);
        }
    }
}

/// Rejects `application/json` both as conversation records and as a type of its own.
fn one_reading_of_json(types: &[TypeRule], spelled: &impl Fn(&TypeRule) -> String, notes: &Notebook) {
    let takes_json = |rule: &TypeRule| rule.profile.as_dyn().accepts_json();
    let own = types.iter().any(|rule| spelled(rule) == content_types::JSON);
    if let Some(i) = types.iter().position(takes_json).filter(|_| own) {
        notes.note(
            format!("type[{i}].conversation.accept_application_json"),
            "application/json is a type of its own in this policy",
        );
    }
}
