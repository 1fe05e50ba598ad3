//! Audit records on their own.

use merkle::EntryDigest;
use registration::vap::{AuditRule as R, VAP_AUDIT};
use serde_json::{Value, json};
use testkit::{COMMITMENT, SESSION, audit_json, decision_json, outcome_json};

use super::{breaks, canonical, keeps, statement, text_with, with, without};
use crate::Case;

fn sign(record: &Value) -> Vec<u8> {
    sign_text(canonical(record))
}

fn sign_text(payload: impl Into<Vec<u8>>) -> Vec<u8> {
    statement(VAP_AUDIT, SESSION, payload)
}

fn decision() -> Value {
    decision_json(SESSION, 0)
}

fn outcome() -> Value {
    outcome_json(SESSION, 1, &EntryDigest::from_bytes([0xab; 32]))
}

fn tools() -> Value {
    let mut record = audit_json("tools", SESSION, 1);
    let digest = |byte: &str| format!("sha256:{}", byte.repeat(32));
    for (name, value) in [
        ("route", json!("/mcp")),
        ("event", json!("changed")),
        (
            "tools",
            json!([{ "tool": "read_file", "was": digest("ab"), "is": digest("cd") }, { "is": digest("ef") }]),
        ),
        ("more", json!(3)),
    ] {
        record[name] = value;
    }
    record
}

fn decision_with(pointer: &str, value: Value) -> Vec<u8> {
    sign(&with(decision(), pointer, value))
}

/// The record of a stream, in a statement about it.
fn in_stream(stream: &str) -> Vec<u8> {
    statement(VAP_AUDIT, stream, canonical(&with(decision(), "/stream", json!(stream))))
}

fn outcome_with(pointer: &str, value: Value) -> Vec<u8> {
    sign(&with(outcome(), pointer, value))
}

pub fn cases() -> Vec<Case> {
    [json_cases(), member_cases(), common_cases(), decided_cases(), confirmation_cases(), outcome_cases()]
        .concat()
}

/// Who answered a question about a call.
fn confirmation_cases() -> Vec<Case> {
    let by_client = json!({ "by": "client", "answer": "confirmed" });
    let by_approver = json!({
        "by": "approver", "answer": "declined", "approver": "carol", "kid": "key-1",
        "question": "0123456789abcdef0123456789abcdef",
        "approval": format!("sha256:{}", "ab".repeat(32)),
    });
    let confirmed = |confirmation: &Value| decision_with("/confirmation", confirmation.clone());
    let other = |name: &str, value: Value| confirmed(&with(by_approver.clone(), &format!("/{name}"), value));
    let mut unsigned = by_approver.clone();
    unsigned.as_object_mut().unwrap().remove("approval");
    vec![
        keeps(R::Member, "confirmed-by-client", "The client's word for its user.", confirmed(&by_client)),
        keeps(R::Member, "confirmed-by-approver", "An approver signed.", confirmed(&by_approver)),
        breaks(R::Member, "confirmed-by-nobody", "Nobody like that answers.", other("by", json!("judge"))),
        breaks(R::Member, "confirmed-otherwise", "There is yes and no.", other("answer", json!("perhaps"))),
        breaks(
            R::Member,
            "confirmed-unsigned",
            "What an approver signed has a digest.",
            confirmed(&unsigned),
        ),
        breaks(
            R::Member,
            "confirmed-digest",
            "A digest of another form.",
            other("approval", json!("sha256:AB")),
        ),
        breaks(R::Identifier, "approver-empty", "An approver has a name.", other("approver", json!(""))),
        breaks(
            R::UnknownMember,
            "confirmed-by-client-signed",
            "A client signs nothing.",
            confirmed(&with(by_client.clone(), "/approver", json!("carol"))),
        ),
    ]
}

fn json_cases() -> Vec<Case> {
    let record = decision();
    vec![
        keeps(R::Json, "object", "One JSON object.", sign(&record)),
        breaks(R::Json, "array", "A record is an object.", sign_text(b"[]".to_vec())),
        breaks(R::Json, "empty", "No bytes are no record.", sign_text(b" ".to_vec())),
        keeps(R::DuplicateMember, "each-once", "Every member once.", sign(&record)),
        breaks(
            R::DuplicateMember,
            "verdict-twice",
            "One reader sees denied, another served.",
            sign_text(text_with(&record, "\"verdict\":", "\"verdict\":\"denied\",\"verdict\":")),
        ),
        keeps(
            R::LoneSurrogate,
            "pair",
            "A whole pair is one character.",
            decision_with("/tool", json!("😀")),
        ),
        breaks(
            R::LoneSurrogate,
            "half",
            "Half a pair is no character.",
            sign_text(text_with(&record, "read_file", "\\ud83d")),
        ),
        keeps(R::Canonical, "canonical", "Names in order, nothing between.", sign(&record)),
        breaks(
            R::Canonical,
            "blank",
            "A blank that JCS does not write.",
            sign_text(text_with(&record, ":", ": ")),
        ),
        breaks(
            R::Canonical,
            "escape",
            "An escape that JCS does not write.",
            sign_text(text_with(&record, "read_file", "read\\u005ffile")),
        ),
        breaks(
            R::Canonical,
            "number",
            "A number in another spelling.",
            sign_text(text_with(&record, "\"seq\":0", "\"seq\":0e0")),
        ),
        breaks(
            R::Canonical,
            "lost-digits",
            "Digits that a double does not hold.",
            sign_text(text_with(
                &with(decision(), "/verification/risk_score", json!(0.5)),
                ":0.5",
                ":0.50000000000000001",
            )),
        ),
    ]
}

fn member_cases() -> Vec<Case> {
    let mut cases = vec![keeps(
        R::Member,
        "least",
        "What a decision must hold, and nothing else.",
        sign(&without(without(decision(), "/tool"), "/agent_id")),
    )];
    for name in ["version", "kind", "gateway", "stream", "seq", "at"] {
        let statement = sign(&without(decision(), &format!("/{name}")));
        cases.push(breaks(R::Member, &format!("no-{name}"), "Every record holds this member.", statement));
    }
    for name in ["verdict", "verification", "policy_digest", "meters", "committed"] {
        let statement = sign(&without(decision(), &format!("/{name}")));
        cases.push(breaks(
            R::Member,
            &format!("decision-no-{name}"),
            "A decision holds this member.",
            statement,
        ));
    }
    for name in ["backLink", "status", "settled"] {
        let statement = sign(&without(outcome(), &format!("/{name}")));
        cases.push(breaks(
            R::Member,
            &format!("outcome-no-{name}"),
            "An outcome holds this member.",
            statement,
        ));
    }
    for (name, pointer, value) in [
        ("meters-list", "/meters", json!([])),
        ("meter-number", "/meters", json!({ "calls": 1 })),
        ("checks-text", "/verification/checks", json!("scope_ok")),
        ("tool-null", "/tool", json!(null)),
        ("committed-text", "/committed", json!(COMMITMENT)),
        ("binding-list", "/binding", json!([])),
        ("binding-iat-text", "/binding", json!({ "iat": "1" })),
    ] {
        cases.push(breaks(R::Member, name, "A member of another type.", decision_with(pointer, value)));
    }
    cases.push(keeps(
        R::UnknownMember,
        "closed",
        "The end of a stream says nothing more.",
        sign(&audit_json("closed", SESSION, 2)),
    ));
    for (name, record) in [
        ("vendor", with(decision(), "/x_vendor", json!(1))),
        ("goal-in-clear", with(decision(), "/goal", json!("refund the customer"))),
        ("principal-in-clear", with(decision(), "/principal", json!({ "agent_id": "a" }))),
        ("commitment-digest", with(decision(), "/accepted_commitment_digest", json!("sha256:00"))),
        ("decision-status", with(decision(), "/status", json!("executed"))),
        ("outcome-tool", with(outcome(), "/tool", json!("read_file"))),
        ("outcome-result", with(outcome(), "/result", json!({}))),
        ("closed-meters", with(audit_json("closed", SESSION, 2), "/meters", json!({}))),
        ("verification-vendor", with(decision(), "/verification/x", json!(1))),
        ("binding-aud", with(decision(), "/binding", json!({ "aud": "a" }))),
    ] {
        cases.push(breaks(R::UnknownMember, name, "Not a member of this kind of record.", sign(&record)));
    }
    cases
}

fn common_cases() -> Vec<Case> {
    let mut cases = vec![
        keeps(R::Version, "one", "The one version.", sign(&decision())),
        breaks(R::Version, "two", "A version nobody has written.", decision_with("/version", json!("2"))),
        keeps(
            R::Identifier,
            "asserted-client",
            "What the client calls itself.",
            decision_with("/asserted_client", json!("editor")),
        ),
        breaks(
            R::Identifier,
            "asserted-client-empty",
            "A client without a name.",
            decision_with("/asserted_client", json!("")),
        ),
        keeps(R::Kind, "tools", "What a server says of its tools changed.", sign(&tools())),
        breaks(
            R::Member,
            "tools-without-digest",
            "A tool that says nothing.",
            sign(&without(tools(), "/tools/0/is")),
        ),
        breaks(R::Member, "tools-none", "A record of no tools.", sign(&with(tools(), "/tools", json!([])))),
        breaks(
            R::Member,
            "tools-event",
            "Nothing that happens to tools.",
            sign(&with(tools(), "/event", json!("lost"))),
        ),
        breaks(R::Kind, "unknown", "A kind nobody knows.", decision_with("/kind", json!("denial"))),
        breaks(R::Kind, "capital", "Case counts.", decision_with("/kind", json!("Decision"))),
        keeps(R::Kind, "commitment", "A commitment was judged.", decision_with("/kind", json!("commitment"))),
        keeps(R::Kind, "amendment", "An amendment was judged.", decision_with("/kind", json!("amendment"))),
        keeps(R::Identifier, "long", "256 characters.", decision_with("/tool", json!("é".repeat(256)))),
        breaks(R::Identifier, "too-long", "257 characters.", decision_with("/tool", json!("é".repeat(257)))),
        breaks(R::Identifier, "empty", "No name at all.", decision_with("/agent_id", json!(""))),
        breaks(R::Identifier, "control", "A line feed in a name.", decision_with("/tool", json!("a\nb"))),
        breaks(
            R::Identifier,
            "jti-empty",
            "No name at all.",
            decision_with("/binding", json!({ "jti": "" })),
        ),
        keeps(R::Gateway, "issuer", "The gateway is the issuer.", sign(&decision())),
        breaks(
            R::Gateway,
            "another",
            "A gateway speaks for itself only.",
            decision_with("/gateway", json!("https://other-gateway.example")),
        ),
        keeps(R::Stream, "subject", "The stream is the subject.", sign(&decision())),
        breaks(
            R::Stream,
            "another",
            "The record of another stream.",
            decision_with("/stream", json!("session-2")),
        ),
        keeps(R::Stream, "tab", "A session has the name that its client gave it.", in_stream("session\t2")),
        keeps(R::Stream, "long", "As long as a claim may be.", in_stream(&"s".repeat(8192))),
        keeps(R::Stream, "unbound", "An instance, outside any session.", in_stream("unbound:gateway-1")),
        breaks(R::Stream, "none", "What stands for no session is no stream.", in_stream("none")),
        breaks(R::Stream, "unbound-nobody", "Which instance is it?", in_stream("unbound:")),
        breaks(R::Identifier, "stream-empty", "No stream at all.", decision_with("/stream", json!(""))),
        breaks(
            R::Identifier,
            "stream-too-long",
            "Longer than any claim.",
            decision_with("/stream", json!("s".repeat(8193))),
        ),
        keeps(
            R::Identifier,
            "aer-id",
            "The AgentROA record of the same call.",
            decision_with("/aer_id", json!("aer:2f5a8c1d4e7b0f3a")),
        ),
        breaks(
            R::Identifier,
            "aer-id-upper-case",
            "No such record can have this name.",
            decision_with("/aer_id", json!("aer:2F5A8C1D4E7B0F3A")),
        ),
        breaks(
            R::Identifier,
            "aer-id-uuid",
            "Nor this one.",
            decision_with("/aer_id", json!("aer:2f5a8c1d-4e7b")),
        ),
        keeps(R::Sequence, "largest", "2^53 - 1.", decision_with("/seq", json!(9_007_199_254_740_991u64))),
        breaks(R::Sequence, "too-large", "2^53.", decision_with("/seq", json!(9_007_199_254_740_992u64))),
        breaks(R::Sequence, "negative", "A stream begins at 0.", decision_with("/seq", json!(-1))),
        breaks(R::Sequence, "fraction", "No record between two.", decision_with("/seq", json!(0.5))),
        breaks(R::Sequence, "text", "A number as text.", decision_with("/seq", json!("0"))),
        keeps(
            R::At,
            "fraction",
            "A fraction of a second.",
            decision_with("/at", json!("2026-01-01T00:00:00.123Z")),
        ),
        keeps(R::AtFuture, "five-minutes", "A clock that is five minutes ahead.", sign(&decision()))
            .at(1_767_225_600 - 300),
        breaks(R::AtFuture, "more", "A clock that is more than five minutes ahead.", sign(&decision()))
            .at(1_767_225_600 - 301),
    ];
    for (i, text) in ["2026-01-01T00:00:00+00:00", "2026-01-01 00:00:00Z", "2026-02-30T00:00:00Z", ""]
        .into_iter()
        .enumerate()
    {
        let why = "Not a time in UTC, written with Z.";
        cases.push(breaks(R::At, &format!("not-a-time-{i}"), why, decision_with("/at", json!(text))));
    }
    cases
}

fn decided_cases() -> Vec<Case> {
    let full = json!({
        "checks": ["scope_ok", "policy:R3_ok"], "method": "static+policy+semantic", "risk_score": 0.25,
        "semantic_invoked": true, "semantic_trigger": "novelty", "confidence": 0.9, "reason": "budget_exceeded",
    });
    let full_with = |name: &str, value: Value| {
        decision_with("/verification", with(full.clone(), &format!("/{name}"), value))
    };
    let commits = json!({
        "goal": COMMITMENT, "rationale": COMMITMENT, "expected_effect": COMMITMENT, "arguments": COMMITMENT,
        "effective_commitment": COMMITMENT, "principal": COMMITMENT, "verdict": COMMITMENT,
    });
    let meters = |n: usize| Value::Object((0..n).map(|i| (format!("meter-{i}"), json!("1"))).collect());
    let mut cases = vec![
        breaks(
            R::Verdict,
            "allowed",
            "A word of another document.",
            decision_with("/verdict", json!("allowed")),
        ),
        keeps(
            R::Verification,
            "full",
            "Everything the wire may say.",
            decision_with("/verification", full.clone()),
        ),
        breaks(R::Verification, "method", "A method nobody knows.", full_with("method", json!("guess"))),
        breaks(
            R::Verification,
            "trigger",
            "A trigger nobody knows.",
            full_with("semantic_trigger", json!("mood")),
        ),
        breaks(R::Verification, "risk-above", "More than 1.", full_with("risk_score", json!(1.5))),
        breaks(R::Verification, "confidence-below", "Less than 0.", full_with("confidence", json!(-1))),
        keeps(R::Code, "codes", "Checks and reasons as codes.", decision_with("/verification", full.clone())),
        breaks(
            R::Code,
            "sentence",
            "Words of the judge leak what was said.",
            full_with("reason", json!("refund for John Smith")),
        ),
        breaks(
            R::Code,
            "check-sentence",
            "A sentence among the checks.",
            full_with("checks", json!(["scope ok"])),
        ),
        breaks(R::Code, "empty", "No code at all.", full_with("reason", json!(""))),
        breaks(R::Code, "long", "65 characters.", full_with("reason", json!("x".repeat(65)))),
        keeps(R::PolicyDigest, "sha-256", "A SHA-256 in lower case.", sign(&decision())),
        breaks(
            R::PolicyDigest,
            "upper-case",
            "One digest has one spelling.",
            decision_with("/policy_digest", json!(format!("sha256:{}", "AB".repeat(32)))),
        ),
        breaks(
            R::PolicyDigest,
            "short",
            "Not the length of a SHA-256.",
            decision_with("/policy_digest", json!("sha256:00")),
        ),
        keeps(
            R::Meter,
            "sixty-four",
            "As many meters as there may be.",
            decision_with("/meters", meters(64)),
        ),
        breaks(R::Meter, "sixty-five", "One too many.", decision_with("/meters", meters(65))),
        keeps(
            R::Commitment,
            "all",
            "Everything that a caller says, committed.",
            decision_with("/committed", commits),
        ),
        breaks(
            R::Commitment,
            "plain-hash",
            "A plain hash of few possible values is no secret.",
            decision_with("/committed", json!({ "goal": format!("sha256:{}", "ab".repeat(32)) })),
        ),
        breaks(
            R::Commitment,
            "in-clear",
            "The value itself.",
            decision_with("/committed", json!({ "goal": "refund" })),
        ),
        breaks(
            R::Commitment,
            "unlisted",
            "A decision has no result.",
            decision_with("/committed", json!({ "result": COMMITMENT })),
        ),
        breaks(
            R::Commitment,
            "binding-request-in-clear",
            "The hash of a request is guessable: it is committed too.",
            decision_with("/binding", json!({ "req": format!("sha256:{}", "ab".repeat(32)) })),
        ),
        keeps(
            R::Commitment,
            "binding",
            "What the verdict's signature bound to the call.",
            decision_with("/binding", json!({ "iat": 1_767_225_600, "jti": "1", "req": COMMITMENT })),
        ),
        keeps(R::Canon, "raw", "Digests over the raw bytes.", decision_with("/canon", json!("raw"))),
        breaks(R::Canon, "jcs", "What is usual is not said.", decision_with("/canon", json!("jcs"))),
    ];
    for word in ["served", "clarify", "downgraded", "denied"] {
        let statement = decision_with("/verdict", json!(word));
        cases.push(keeps(R::Verdict, word, "A verdict of the wire.", statement));
    }
    for (i, meter) in ["-1", "1e3", "01", "1.", ".5", "NaN", ""].into_iter().enumerate() {
        let statement = decision_with("/meters", json!({ "usd": meter }));
        cases.push(breaks(
            R::Meter,
            &format!("no-decimal-{i}"),
            "Not a decimal number of at least 0.",
            statement,
        ));
    }
    cases
}

fn outcome_cases() -> Vec<Case> {
    let mut cases = vec![
        breaks(R::Status, "done", "A status nobody knows.", outcome_with("/status", json!("done"))),
        keeps(R::BackLink, "entry-id", "An entry ID.", sign(&outcome())),
        breaks(
            R::BackLink,
            "upper-case",
            "Entry IDs are lower case.",
            outcome_with("/backLink", json!("AB".repeat(32))),
        ),
        breaks(
            R::BackLink,
            "short",
            "Not the length of an entry ID.",
            outcome_with("/backLink", json!("ab")),
        ),
        breaks(
            R::BackLink,
            "tagged",
            "The ID alone.",
            outcome_with("/backLink", json!(format!("sha256:{}", "ab".repeat(32)))),
        ),
        breaks(
            R::Commitment,
            "outcome-arguments",
            "An outcome commits to the result.",
            outcome_with("/committed", json!({ "arguments": COMMITMENT })),
        ),
        keeps(
            R::Commitment,
            "outcome-nothing",
            "Nothing came back.",
            sign(&without(outcome(), "/committed")),
        ),
        breaks(
            R::Meter,
            "settled-number",
            "Not a decimal number.",
            outcome_with("/settled", json!({ "usd": "free" })),
        ),
        keeps(
            R::Canon,
            "outcome-raw",
            "A result that JCS cannot hold.",
            outcome_with("/canon", json!("raw")),
        ),
    ];
    for word in ["executed", "errored", "refused", "unknown"] {
        cases.push(keeps(R::Status, word, "How a call ends.", outcome_with("/status", json!(word))));
    }
    cases
}
