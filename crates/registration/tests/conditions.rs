//! `vectors/policy/decided/*.json`: what an operator adds to a content type (conditions, required headers), a statement, and
//! what becomes of it.
//!
//! `vectors/sources/policy/decided.toml` describes them; after a change there, write them again with `WRITE_VECTORS=1 cargo test -p registration --test conditions`.

#![allow(clippy::unwrap_used)]

use merkle::LeafIndex;
use registration::vrf::VrfStatement;
use registration::{
    Answers, Decision, NotPermitted, Policy, PolicyInForce, Record, SideData, Undecided, Violation,
};
use scitt::{SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};
use testkit::{AGENT, LOG_ISS, ORIGIN, operator, receipt_json, verifier};

fn policy_of(types: &str) -> Policy {
    Policy::from_toml(&policy_text(types)).unwrap_or_else(|mistakes| panic!("{types}\n{mistakes}"))
}

fn policy_text(types: &str) -> String {
    let operator = operator().public_key().did_key();
    format!(
        "iss = \"{LOG_ISS}\"\norigin = \"{ORIGIN}\"\noperator = [\"{operator}\"]\ndid = {{ key = \"open\" }}\n{types}"
    )
}

fn decided(statement: &SignedStatement, policy: &Policy) -> Decision {
    let in_force = PolicyInForce::new(policy.clone(), LeafIndex::new(0));
    let authenticated = in_force.authenticate(statement, SideData::default()).unwrap();
    let record = Record::read(&authenticated).unwrap();
    in_force.decide(&authenticated, &record, &Answers::none())
}

fn rule_that_admits(statement: &SignedStatement, policy: &Policy) -> String {
    decided(statement, policy).into_permit().unwrap().rule().to_string()
}

fn refusal(statement: &SignedStatement, policy: &Policy) -> Violation {
    match decided(statement, policy).into_permit() {
        Err(NotPermitted::Refused(refusal)) => refusal.violation,
        other => panic!("{other:?}"),
    }
}

fn receipt(n: u64, verdict: &str) -> SignedStatement {
    let mut receipt = receipt_json(n);
    receipt["verdict"] = verdict.into();
    if verdict != "pass" {
        receipt["results"] = json!({ "total": 1, "passed": 0, "failed": 1, "errors": 0 });
    }
    VrfStatement::new(receipt, AGENT).sign(&verifier()).unwrap()
}

fn note() -> StatementBuilder {
    StatementBuilder::new(*b"{}")
        .content_type("application/json")
        .iss(&verifier().public_key().did_key())
        .sub("s")
}

fn signed(builder: StatementBuilder) -> SignedStatement {
    builder.kid(*b"k").sign(&verifier()).unwrap()
}

const FAILED_BELOW_TIER_1: &str = r#"
[[type]]
content_type = "application/vrf+cbor"
[[type.rule]]
name = "failed-below-tier-1"
when = 'input.record.verdict != "pass"; input.record.tier < 1'
then = "refuse"
"#;

const IN_ORDER: &str = r#"
[[type]]
name = "notes"
content_type = "application/json"
[[type.rule]]
name = "from-the-lab"
when = 'startswith(input.sub, "lab/")'
then = "admit"
[[type.rule]]
name = "dated"
when = "not input.claims.iat"
then = "refuse"
[[type.rule]]
name = "short"
when = "input.size > 300"
then = "refuse"
"#;

fn answer_of(decision: Decision) -> Value {
    match decision.into_permit() {
        Ok(permit) => json!({ "admitted_by": permit.rule().as_str() }),
        Err(NotPermitted::Refused(refusal)) => {
            let violation = refusal.violation;
            json!({ "refused_by": violation.rule.as_str(), "place": violation.place.to_string() })
        }
        Err(NotPermitted::Undecided(undecided)) => json!({ "undecided": undecided.rule.as_str() }),
    }
}

#[test]
fn every_vector_is_decided_as_it_says() {
    testkit::vectors::assert_kind_matches_source("policy", "decided", |_, mut vector| {
        let members = vector.as_object_mut().unwrap();
        let [head, types] = ["head", "types"].map(|name| members.remove(name).unwrap());
        let toml = format!("{}{}", head.as_str().unwrap(), types.as_str().unwrap());
        let policy = Policy::from_toml(&toml).unwrap_or_else(|mistakes| panic!("{toml}\n{mistakes}"));
        let message =
            data_encoding::HEXLOWER.decode(vector["statement"].as_str().unwrap().as_bytes()).unwrap();
        let statement = SignedStatement::parse(message).unwrap();
        assert_eq!(answer_of(decided(&statement, &policy)), vector["answer"], "{}", vector["why"]);
        // Without the unprotected header, which a log does not hold either.
        vector["statement"] = data_encoding::HEXLOWER.encode(statement.bytes()).into();
        vector["policy"] = String::from_utf8(policy.payload().to_vec()).unwrap().into();
        vector
    });
}

#[test]
fn a_condition_sees_what_was_authenticated_and_read() {
    let with = |when: &str| {
        format!(
            "[[type]]\ncontent_type = \"application/json\"\n[[type.rule]]\nname = \"seen\"\nwhen = '''{when}'''\nthen = \"admit\"\n"
        )
    };
    let statement = signed(note().iat(5));
    let issuer = verifier().public_key().did_key();
    for when in [
        format!("input.iss == \"{issuer}\"; input.sub == \"s\"; input.content_type == \"application/json\""),
        "input.algorithm == \"EdDSA\"; input.authenticated_by == \"did:key\"".to_owned(),
        format!("input.size == {}; not input.detached; not input.hash_envelope", statement.bytes().len()),
        "input.claims == {\"iat\": 5}; input.record == {}".to_owned(),
        "count(input) == 10".to_owned(),
    ] {
        assert_eq!(rule_that_admits(&statement, &policy_of(&with(&when))), "seen", "{when}");
    }
}

#[test]
fn a_condition_sees_the_payload_of_json_without_a_profile_and_nothing_but_strict_json() {
    let policy = policy_of(
        "[[type]]\ncontent_type = \"application/json\"\n[[type.rule]]\nname = \"large\"\n\
         when = \"input.record.amount > 1000\"\nthen = \"refuse\"\n",
    );
    let paid = |payload: &[u8]| {
        let issuer = verifier().public_key().did_key();
        signed(StatementBuilder::new(payload).content_type("application/json").iss(&issuer).sub("s"))
    };
    assert_eq!(rule_that_admits(&paid(br#"{"amount":1000}"#), &policy), "application/json");
    for (payload, rule) in [
        (r#"{"amount":1001}"#, "large"),
        (r#"{"Amount":1001}"#, "large"),
        (r#"{"amount":null}"#, "large"),
        ("[1001]", "large"),
        (r#"{"amount":1,"amount":1001}"#, "payload-json"),
        (r#"{"$serde_json::private::RawValue":"{\"amount\":1}"}"#, "payload-json"),
        (r#"{"amount":9007199254740993}"#, "payload-json"),
        ("not JSON", "payload-json"),
    ] {
        assert_eq!(refusal(&paid(payload.as_bytes()), &policy).rule.as_str(), rule, "{payload}");
    }
}

#[test]
fn a_condition_sees_the_payload_of_cbor_without_a_profile_as_the_json_that_says_the_same() {
    let policy = policy_of(
        "[[type]]\ncontent_type = \"application/x+cbor\"\n[[type.rule]]\nname = \"large\"\n\
         when = \"input.record.amount > 1000\"\nthen = \"refuse\"\n",
    );
    let paid = |payload: &[u8]| {
        let issuer = verifier().public_key().did_key();
        signed(StatementBuilder::new(payload).content_type("application/x+cbor").iss(&issuer).sub("s"))
    };
    // {"amount": 1000}, and 1001; nothing; the member twice; its digits and a text.
    assert_eq!(rule_that_admits(&paid(b"\xa1\x66amount\x19\x03\xe8"), &policy), "application/x+cbor");
    for (payload, rule) in [
        (&b"\xa1\x66amount\x19\x03\xe9"[..], "large"),
        (b"\xa0", "large"),
        (b"\xa2\x66amount\x01\x66amount\x19\x03\xe9", "payload-cbor"),
        (b"{\"amount\":1}", "payload-cbor"),
    ] {
        assert_eq!(refusal(&paid(payload), &policy).rule.as_str(), rule, "{payload:x?}");
    }
}

#[test]
fn a_condition_that_names_what_no_statement_of_its_type_has_is_a_mistake_of_the_policy() {
    let mistakes = |content_type: &str, when: &str| {
        let types = format!(
            "[[type]]\n{content_type}\n[[type.rule]]\nname = \"r\"\nwhen = '{when}'\nthen = \"refuse\"\n"
        );
        Policy::from_toml(&policy_text(&types)).map(drop).map_err(|mistakes| mistakes.to_string())
    };
    let json = "content_type = \"application/json\"";
    for (content_type, when, named) in [
        ("content_type = \"text/plain\"", "input.record.x == 1", "input.record.x"),
        (
            "content_type = \"application/json\"\nhash_envelope = true",
            "input.record.x == 1",
            "input.record.x",
        ),
        (json, "input.recrod.x == 1", "input.recrod.x"),
        (json, "input.claims.iss == `x`", "input.claims.iss"),
    ] {
        let told = mistakes(content_type, when).unwrap_err();
        assert!(told.contains("type[0].rule[0].when: names ") && told.contains(named), "{told}");
    }
    for when in [
        "input.record.x == 1",
        "not input.claims.iat",
        "input.size > 3",
        "some claim in input.claims; claim > 5",
    ] {
        mistakes(json, when).unwrap();
    }
    mistakes("content_type = \"application/vrf+cbor\"", "input.record.tier < 1").unwrap();
}

#[test]
fn a_condition_that_reads_a_member_without_its_path_is_a_mistake_of_the_policy() {
    for when in [
        "some name in [`amount`, `total`]; input.record[name] > 1000",
        "payments := [p | some p in input.record.a; p.kind == `pay`]; payments[_].size > 10",
        "input.record.order = order; order.size > 10",
    ] {
        let types = format!(
            "[[type]]\ncontent_type = \"application/json\"\n[[type.rule]]\nname = \"r\"\nwhen = '{when}'\nthen = \"refuse\"\n"
        );
        let told = Policy::from_toml(&policy_text(&types)).map(drop).unwrap_err().to_string();
        assert!(told.contains("type[0].rule[0].when: line 1, column "), "{told}");
    }
}

#[test]
fn two_comprehensions_that_use_one_name_refuse_what_either_of_them_lacks() {
    let policy = policy_of(
        "[[type]]\ncontent_type = \"application/json\"\n[[type.rule]]\nname = \"large\"\n\
         when = \"count([x | some x in input.record.a; x.size > 10]) > 0; \
         count([x | some x in input.record.b; x.size > 10]) > 0\"\nthen = \"refuse\"\n",
    );
    let paid = |payload: &[u8]| {
        let issuer = verifier().public_key().did_key();
        signed(StatementBuilder::new(payload).content_type("application/json").iss(&issuer).sub("s"))
    };
    let hidden = paid(br#"{"a":[{"Size":5000}],"b":[{"size":99}]}"#);
    assert_eq!(refusal(&hidden, &policy).rule.as_str(), "large");
    let small = paid(br#"{"a":[{"size":1}],"b":[{"size":99}]}"#);
    assert_eq!(rule_that_admits(&small, &policy), "application/json");
}

#[test]
fn no_condition_admits_what_a_typed_check_refuses() {
    let types = "[[type]]\ncontent_type = \"application/json\"\nalgorithms = [\"ES256\"]\n\
                 [[type.rule]]\nname = \"all\"\nwhen = \"true\"\nthen = \"admit\"\n";
    assert_eq!(refusal(&signed(note()), &policy_of(types)).rule.as_str(), "algorithm-not-accepted");
}

#[test]
fn the_conditions_of_one_type_are_not_asked_of_another() {
    let types = format!("{FAILED_BELOW_TIER_1}{IN_ORDER}");
    assert_eq!(rule_that_admits(&receipt(1, "pass"), &policy_of(&types)), "application/vrf+cbor");
}

#[test]
fn a_condition_that_runs_out_of_time_decides_nothing() {
    let when =
        "some a in numbers; some b in numbers; some c in numbers; some d in numbers; a + b + c + d < 0";
    let numbers: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    let types = format!(
        "[[type]]\ncontent_type = \"application/json\"\n[[type.rule]]\nname = \"slow\"\nwhen = \"numbers := [{}]; {when}\"\nthen = \"refuse\"\n",
        numbers.join(",")
    );
    let Err(NotPermitted::Undecided(Undecided { rule, .. })) =
        decided(&signed(note()), &policy_of(&types)).into_permit()
    else {
        panic!("it was decided")
    };
    assert_eq!(rule.as_str(), "slow");
}

#[test]
fn a_policy_with_conditions_comes_back_from_the_log_as_it_was() {
    let types = format!("{FAILED_BELOW_TIER_1}{IN_ORDER}");
    let own = "name = \"notes\"\nheaders = [16, \"x\"]\nretention = \"365 days\"\nkeep_payload = false";
    let types = types.replacen("name = \"notes\"", own, 1);
    let policy = policy_of(&types);
    let back = Policy::from_payload(policy.payload()).unwrap();
    assert_eq!(back.contents(), policy.contents());
    assert_eq!(back.digest(), policy.digest());
}
