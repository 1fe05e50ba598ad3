//! The three messages as their schemas list them, and what the readings add: V-8, V-10, V-13, V-15, V-16.

use serde_json::{Value, json};
use vap::limits::{MAX_METERS, MAX_PATTERN, MAX_PATTERNS};
use vap::message::{Deadline, Message, MessageType, Sensitivity};
use vap::reason::Reason;

use crate::sample::{amendment, commitment, intent, scope_amendment, scope_commitment, with};

/// Where the flaw is, and its code.
fn flaw(text: &str) -> (String, Reason) {
    let flaw = Message::read(text).unwrap_err();
    (flaw.pointer, flaw.reason)
}

fn must_be_refused(message: &Value, at: &str, reason: Reason) {
    assert_eq!(flaw(&message.to_string()), (at.to_owned(), reason), "{message}");
}

#[test]
fn a_commitment_is_read_with_everything_in_it() {
    let read = scope_commitment(&commitment());
    assert_eq!((read.session_id.as_str(), read.principal.agent_id.as_str()), ("s-1", "did:example:a"));
    assert!(
        read.scope.allows("crm.read") && !read.scope.allows("crm.delete_all") && !read.scope.allows("mail")
    );
    assert_eq!(read.budget.max_calls, Some(20));
    assert_eq!(read.budget.limits["usd_opcost"].to_string(), "0.5");
    assert_eq!(read.budget.deadline.unwrap().as_str(), "2026-12-01T00:00:00Z");
    assert_eq!((read.plan_digest.unwrap().as_str(), read.signature), ("sha256:00ff", None));
}

#[test]
fn an_envelope_and_an_amendment_are_read_with_everything_in_them() {
    let Message::IntentEnvelope(read) = Message::read(&intent().to_string()).unwrap() else { panic!() };
    assert_eq!((read.intent.step, read.intent.sensitivity), (Some(3), Some(Sensitivity::Reads)));
    assert_eq!((read.call.tool.as_str(), read.call.arguments.as_str()), ("crm.read", r#"{"ticket":9931}"#));
    let read = scope_amendment(&amendment("sha256:00"));
    assert_eq!(read.add_scope.unwrap().tools_deny[0].as_str(), "refunds.list");
    let budget = read.increase_budget.unwrap();
    assert_eq!((budget.add_calls, budget.add_limits["usd_opcost"].to_string().as_str()), (Some(5), "0.1"));
    assert_eq!(
        Message::read(&amendment("sha256:00").to_string()).unwrap().kind(),
        MessageType::ScopeAmendment
    );
}

#[test]
fn numbers_are_what_was_written_and_not_what_a_double_holds() {
    let text = commitment()
        .to_string()
        .replace("\"tokens\":1000", "\"tokens\":9007199254740993.000000000000000000001");
    let Message::ScopeCommitment(read) = Message::read(&text).unwrap() else { panic!() };
    assert_eq!(read.budget.limits["tokens"].to_string(), "9007199254740993.000000000000000000001");
    let text = intent().to_string().replace("9931}", "12345678901234567891}");
    let Message::IntentEnvelope(read) = Message::read(&text).unwrap() else { panic!() };
    assert_eq!(read.call.arguments, r#"{"ticket":12345678901234567891}"#);
}

#[test]
fn every_required_member_is_required() {
    let required = [
        (
            commitment(),
            &[
                "/vap",
                "/type",
                "/session_id",
                "/goal",
                "/scope",
                "/scope/tools_allow",
                "/budget",
                "/principal",
                "/principal/agent_id",
            ][..],
        ),
        (
            intent(),
            &[
                "/vap",
                "/type",
                "/session_id",
                "/intent",
                "/intent/rationale",
                "/intent/expected_effect",
                "/call",
                "/call/tool",
                "/call/arguments",
            ],
        ),
        (amendment("sha256:00"), &["/vap", "/type", "/session_id", "/prev_commitment_digest", "/reason"]),
    ];
    for (message, pointers) in required {
        for pointer in pointers {
            must_be_refused(&with(message.clone(), &[(pointer, Value::Null)]), pointer, Reason::Malformed);
        }
    }
}

#[test]
fn every_optional_member_is_optional_but_never_null() {
    let optional = [
        (
            commitment(),
            &[
                "/scope/tools_deny",
                "/budget/max_calls",
                "/budget/deadline",
                "/budget/limits",
                "/plan_digest",
                "/principal/auth",
                "/principal/delegated_by",
            ][..],
        ),
        (intent(), &["/intent/step", "/intent/sensitivity", "/intent/reasoning_digest"]),
        (
            amendment("sha256:00"),
            &[
                "/add_scope",
                "/increase_budget",
                "/add_scope/tools_allow",
                "/increase_budget/add_calls",
                "/increase_budget/extend_deadline",
                "/increase_budget/add_limits",
                "/new_plan_digest",
            ],
        ),
    ];
    for (message, pointers) in optional {
        for pointer in pointers {
            let without = with(message.clone(), &[(pointer, Value::Null)]);
            assert!(Message::read(&without.to_string()).is_ok(), "{without}");
            let mut null = message.clone();
            *null.pointer_mut(pointer).unwrap() = Value::Null;
            assert_eq!(flaw(&null.to_string()).0, *pointer);
        }
    }
}

#[test]
fn an_unknown_member_would_be_signed_but_not_understood() {
    for (message, objects) in [
        (commitment(), &["", "/scope", "/budget", "/principal"][..]),
        (intent(), &["", "/intent", "/call"]),
        (amendment("sha256:00"), &["", "/add_scope", "/increase_budget"]),
    ] {
        for object in objects {
            let message = with(message.clone(), &[(&format!("{object}/extra~"), json!(1))]);
            must_be_refused(&message, &format!("{object}/extra~0"), Reason::Malformed);
        }
    }
    let open = with(intent(), &[("/call/arguments/anything", json!({ "goes": [1] }))]);
    assert!(Message::read(&open.to_string()).is_ok());
}

#[test]
fn a_list_is_no_object_however_its_items_would_fit() {
    for (message, pointer) in [
        (commitment(), "/scope"),
        (commitment(), "/principal"),
        (intent(), "/call"),
        (intent(), "/intent"),
        (intent(), "/call/arguments"),
    ] {
        must_be_refused(&with(message, &[(pointer, json!([["*"], []]))]), pointer, Reason::Malformed);
    }
    assert_eq!(flaw(r#"["0.1","scope_commitment","s"]"#).1, Reason::Malformed);
}

#[test]
fn texts_have_the_lengths_of_the_schema_counted_in_characters() {
    for (message, pointer, longest) in [
        (commitment(), "/session_id", 256),
        (commitment(), "/goal", 2000),
        (intent(), "/intent/rationale", 1000),
        (intent(), "/intent/expected_effect", 1000),
        (amendment("sha256:00"), "/reason", 2000),
    ] {
        let of = |length: usize| with(message.clone(), &[(pointer, "é".repeat(length).into())]);
        assert!(Message::read(&of(longest).to_string()).is_ok(), "{pointer}");
        must_be_refused(&of(longest + 1), pointer, Reason::Malformed);
        must_be_refused(&of(0), pointer, Reason::Malformed);
    }
}

#[test]
fn members_of_the_wrong_type_or_form_are_refused() {
    for (message, pointer, value) in [
        (commitment(), "/goal", json!(1)),
        (commitment(), "/scope/tools_allow", json!("*")),
        (commitment(), "/scope/tools_allow", json!([1])),
        (commitment(), "/scope/tools_allow", json!([])),
        (commitment(), "/plan_digest", json!("sha256")),
        (commitment(), "/plan_digest", json!("SHA256:00")),
        (commitment(), "/plan_digest", json!("sha256:xyz")),
        (commitment(), "/principal/agent_id", json!("line\nbreak")),
        (commitment(), "/principal/agent_id", json!("")),
        (commitment(), "/budget/max_calls", json!(0)),
        (commitment(), "/budget/max_calls", json!(-1)),
        (commitment(), "/budget/max_calls", json!(1.5)),
        (commitment(), "/budget/max_calls", json!("20")),
        (commitment(), "/budget/limits/tokens", json!(0)),
        (commitment(), "/budget/limits/tokens", json!(-0.5)),
        (commitment(), "/budget/limits/tokens", json!("1000")),
        (commitment(), "/budget/limits/tokens", json!(true)),
        (intent(), "/intent/step", json!(-1)),
        (intent(), "/intent/sensitivity", json!("harmless")),
        (intent(), "/call/tool", json!("")),
        (intent(), "/call/tool", json!("crm.read\u{0}")),
        (intent(), "/type", json!("verdict")),
        (amendment("sha256:00"), "/prev_commitment_digest", json!("")),
        (amendment("sha256:00"), "/increase_budget", json!({})),
        (amendment("sha256:00"), "/increase_budget/add_calls", json!(0)),
        (amendment("sha256:00"), "/increase_budget/add_limits", json!({})),
    ] {
        must_be_refused(&with(message, &[(pointer, value)]), pointer, Reason::Malformed);
    }
    must_be_refused(&with(intent(), &[("/vap", json!("0.2"))]), "/vap", Reason::UnsupportedVersion);
}

#[test]
fn an_integer_may_be_written_as_any_number_that_is_one() {
    for (text, calls) in [("2e1", 20), ("20.0", 20), ("9007199254740991", 9_007_199_254_740_991)] {
        let text = commitment().to_string().replace("\"max_calls\":20", &format!("\"max_calls\":{text}"));
        let Message::ScopeCommitment(read) = Message::read(&text).unwrap() else { panic!() };
        assert_eq!(read.budget.max_calls, Some(calls));
    }
    for text in ["9007199254740992", "1e300", "18446744073709551616"] {
        let text = commitment().to_string().replace("\"max_calls\":20", &format!("\"max_calls\":{text}"));
        assert_eq!(flaw(&text), ("/budget/max_calls".to_owned(), Reason::OutOfRange));
    }
}

#[test]
fn v_8_patterns_are_bounded_in_number_and_length() {
    let patterns = |allow: usize, deny: usize| {
        let scope = json!({ "tools_allow": vec!["a"; allow], "tools_deny": vec!["b"; deny] });
        with(commitment(), &[("/scope", scope)])
    };
    assert!(Message::read(&patterns(MAX_PATTERNS - 1, 1).to_string()).is_ok());
    must_be_refused(&patterns(MAX_PATTERNS, 1), "/scope", Reason::OutOfRange);
    must_be_refused(&patterns(MAX_PATTERNS + 1, 0), "/scope/tools_allow", Reason::OutOfRange);
    let long = with(commitment(), &[("/scope/tools_deny", json!(["*".repeat(MAX_PATTERN + 1)]))]);
    must_be_refused(&long, "/scope/tools_deny", Reason::OutOfRange);
}

#[test]
fn v_10_a_budget_that_bounds_nothing_is_none() {
    must_be_refused(&with(commitment(), &[("/budget", json!({}))]), "/budget", Reason::NoBudget);
    for budget in [json!({ "limits": {} }), json!({ "limits": {}, "max_calls": 1 })] {
        must_be_refused(&with(commitment(), &[("/budget", budget)]), "/budget/limits", Reason::NoBudget);
    }
}

#[test]
fn v_13_meters_are_bounded_in_number_and_size() {
    let meters = |count: usize| {
        let limits: serde_json::Map<_, _> = (0..count).map(|at| (format!("m{at}"), json!(1))).collect();
        with(commitment(), &[("/budget/limits", limits.into())])
    };
    assert!(Message::read(&meters(MAX_METERS).to_string()).is_ok());
    must_be_refused(&meters(MAX_METERS + 1), "/budget/limits", Reason::OutOfRange);
    let huge = with(commitment(), &[("/budget/limits/tokens", json!(1e308))]);
    must_be_refused(&huge, "/budget/limits/tokens", Reason::OutOfRange);
    let fine = with(commitment(), &[("/budget/limits/tokens", json!(5e-324))]);
    must_be_refused(&fine, "/budget/limits/tokens", Reason::OutOfRange);
    let nameless = with(commitment(), &[("/budget/limits", json!({ "": 1 }))]);
    must_be_refused(&nameless, "/budget/limits/", Reason::Malformed);
}

#[test]
fn v_15_a_deadline_is_a_time_of_rfc_3339_with_an_offset() {
    for (text, at) in [
        ("2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        ("2026-12-01t01:30:00.5+01:30", "2026-12-01T00:00:00.5Z"),
        ("2026-12-01T00:00:00z", "2026-12-01T00:00:00Z"),
        ("2026-12-01T00:00:00-00:00", "2026-12-01T00:00:00Z"),
        ("2026-12-01T00:00:00.123456789987654321Z", "2026-12-01T00:00:00.123456789Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
        ("2024-02-29T00:00:00+23:59", "2024-02-28T00:01:00Z"),
    ] {
        let deadline = Deadline::parse(text).unwrap();
        assert_eq!((deadline.as_str(), deadline.at()), (text, at.parse().unwrap()));
        let read = with(commitment(), &[("/budget/deadline", text.into())]);
        assert_eq!(scope_commitment(&read).budget.deadline, Some(deadline));
    }
}

#[test]
fn v_15_an_unparsable_deadline_denies_instead_of_being_no_deadline() {
    for text in [
        json!("tomorrow"),
        json!(""),
        json!("2026-12-01"),
        json!("2026-12-01T00:00:00"),
        json!("2026-12-01 00:00:00Z"),
        json!("2026-12-01T00:00Z"),
        json!("20261201T000000Z"),
        json!("2026-12-01T00:00:00+0100"),
        json!("2026-12-01T00:00:00+24:00"),
        json!("2026-12-01T00:00:00+01:60"),
        json!("2026-12-01T24:00:00Z"),
        json!("2026-02-29T00:00:00Z"),
        json!("2026-12-01T00:00:00.Z"),
        json!("2026-12-01T00:00:00,5Z"),
        json!("2026-12-01T00:00:00Z[UTC]"),
        json!("2026-12-01T00:00:00Z "),
        json!("+002026-12-01T00:00:00Z"),
        json!("2026-12-01T00:00:00\u{2212}01:00"),
        json!("２026-12-01T00:00:00Z"),
        json!(1_796_083_200),
    ] {
        let message = with(commitment(), &[("/budget/deadline", text)]);
        must_be_refused(&message, "/budget/deadline", Reason::MalformedDeadline);
    }
}

#[test]
fn v_15_at_the_very_deadline_it_has_passed() {
    let deadline = Deadline::parse("2026-12-01T01:00:00+01:00").unwrap();
    let at = |text: &str| deadline.has_passed(text.parse().unwrap());
    assert_eq!((at("2026-11-30T23:59:59.999999999Z"), at("2026-12-01T00:00:00Z")), (false, true));
}

#[test]
fn x_5_no_session_takes_the_name_of_having_none() {
    for id in ["none", "unbound:gw-1", "unbound:"] {
        must_be_refused(
            &with(commitment(), &[("/session_id", id.into())]),
            "/session_id",
            Reason::ReservedSessionId,
        );
    }
    assert!(Message::read(&with(commitment(), &[("/session_id", "None".into())]).to_string()).is_ok());
}

#[test]
fn v_22_two_readers_never_read_two_messages() {
    let twice = commitment().to_string().replacen('{', "{\"goal\":\"another\",", 1);
    assert_eq!(flaw(&twice).1, Reason::Malformed);
    let escaped = intent().to_string().replace("\"ticket\"", "\"a\":1,\"\\u0061\"");
    assert_eq!(flaw(&escaped).1, Reason::Malformed);
    let lone = commitment().to_string().replace("Answer", "\\ud800");
    assert_eq!(flaw(&lone).1, Reason::Malformed);
}
