//! What a policy admits and refuses, and what its permits say.

#![allow(clippy::unwrap_used)]

use lookup_tree::{HEAD_CONTENT_TYPE, HeadRun, IndexHead, RunId, RunSummary};
use merkle::{Hash, LeafIndex, RootHash, TreeSize};
use registration::clock_correction::{self, ClockCorrection};
use registration::index_head;
use registration::operator::{Action, SignError};
use registration::policy::{Identity, Trusted, for_dev};
use registration::policy_statement::{self as statement, PolicyConflict, Step};
use registration::{
    Answers, Guard, GuardKind, NotPermitted, Permit, Policy, PolicyInForce, Questions, Record, SideData,
    TimeWindow, Violation, entry_facts,
};
use scitt::{HashEnvelope, SignedStatement, Signer, StatementBuilder};
use serde_json::{Value, json};
use testkit::{
    GATEWAY, ISSUER, KID, NOW, ORIGIN, es256, operator, policy, policy_statement, policy_toml, verifier,
};

fn decide(statement: &SignedStatement, policy: &Policy) -> Result<Permit, Violation> {
    decide_with(statement, None, policy)
}

fn decide_with(
    statement: &SignedStatement,
    payload: Option<&[u8]>,
    policy: &Policy,
) -> Result<Permit, Violation> {
    let in_force = PolicyInForce::new(policy.clone(), LeafIndex::new(7));
    let beside = SideData { payload, x5chain: None };
    let authenticated =
        in_force.authenticate(statement, beside).map_err(|untrusted| untrusted.violation())?;
    let record = Record::read(&authenticated)?;
    in_force.decide(&authenticated, &record, &Answers::none()).into_permit().map_err(violation)
}

fn violation(why: NotPermitted) -> Violation {
    match why {
        NotPermitted::Refused(refusal) => refusal.violation,
        NotPermitted::Undecided(undecided) => panic!("{undecided}"),
    }
}

fn refused(statement: &SignedStatement, policy: &Policy) -> String {
    decide(statement, policy).map(|_| ()).expect_err("this must be refused").rule.to_string()
}

/// The test policy with one piece of its text replaced.
fn policy_with(from: &str, to: &str) -> Policy {
    let text = policy_toml();
    assert!(text.contains(from), "{from}");
    Policy::from_toml(&text.replace(from, to)).unwrap()
}

fn note() -> StatementBuilder {
    StatementBuilder::new(*b"{}").content_type("application/json").kid(KID).iss(ISSUER).sub("s")
}

fn signed(builder: StatementBuilder) -> SignedStatement {
    builder.sign(&es256()).unwrap()
}

#[test]
fn a_permit_names_the_statement_the_policy_and_the_rule() {
    let statement = testkit::opaque("hello.json", &json!({"a": 1}));
    let permit = decide(&statement, &policy()).unwrap();
    assert_eq!(permit.statement(), statement.digest());
    assert_eq!(permit.policy(), LeafIndex::new(7));
    assert_eq!(permit.policy_digest(), policy().digest());
    assert_eq!(permit.rule().as_str(), "application/json");
    assert_eq!(permit.valid(), TimeWindow::ALWAYS);
    assert!(permit.guards().is_empty() && permit.relied_absent().is_empty() && permit.successor().is_none());
}

#[test]
fn facts_that_the_statement_contains_are_read_from_it_and_not_stored() {
    let statement = testkit::vrf(0);
    let permit = decide(&statement, &policy()).unwrap();
    assert_eq!(permit.facts(), "{}");
    let facts = entry_facts(&statement, permit.facts());
    assert_eq!(facts["iss"], verifier().public_key().did_key());
    assert_eq!((&facts["sub"], &facts["authenticated_by"]), (&json!(testkit::AGENT), &json!("did:key")));
    assert_eq!(facts["content_type"], "application/vrf+cbor");
    assert_eq!(facts["receipt_id"], "11111111-1111-4111-8111-111111111111");
    assert_eq!((&facts["verdict"], &facts["tier"]), (&json!("pass"), &json!(0)));
}

#[test]
fn facts_hold_no_nul_as_not_every_database_keeps_one() {
    assert_eq!(entry_facts(&signed(note().sub("a\0b")), "{}")["sub"], "a\u{fffd}b");
}

#[test]
fn facts_that_only_the_decision_finds_are_stored_as_canonical_json() {
    let first = testkit::receipt(0).sign(&verifier()).unwrap();
    let second = testkit::receipt(1).after(first.digest(), 1).sign(&verifier()).unwrap();
    let permit = decide(&second, &policy()).unwrap();
    assert_eq!(permit.facts(), r#"{"chain_verified":false}"#);
    let facts = entry_facts(&second, permit.facts());
    assert_eq!((&facts["chain_verified"], &facts["chain_position"]), (&json!(false), &json!(1)));
}

#[test]
fn a_content_type_that_no_rule_names_is_refused() {
    assert_eq!(refused(&signed(note().content_type("image/png")), &policy()), "content-type-not-admitted");
    assert_eq!(
        refused(&signed(note().content_type(scitt::ContentType::Id(50))), &policy()),
        "content-type-not-admitted"
    );
    let untyped = StatementBuilder::new(*b"{}").kid(KID).iss(ISSUER).sub("s");
    assert_eq!(refused(&signed(untyped), &policy()), "content-type-missing");
}

#[test]
fn media_types_are_compared_without_case() {
    assert!(decide(&signed(note().content_type("Application/JSON")), &policy()).is_ok());
}

#[test]
fn a_type_without_parameters_admits_it_with_any_unless_just_these_have_a_rule_of_their_own() {
    let with = |name: &str| signed(note().content_type(name));
    let permit = decide(&with("application/json; charset=utf-8"), &policy()).unwrap();
    assert_eq!(permit.rule().as_str(), "application/json");
    let own = "application/json;profile=x";
    let more = format!("[[type]]\ncontent_type = \"{own}\"\nissuers = [\"https://nobody.example\"]\n");
    let policy = Policy::from_toml(&format!("{}\n{more}", policy_toml())).unwrap();
    assert_eq!(refused(&with(own), &policy), "issuer-not-admitted");
    assert!(decide(&with("application/json;profile=y"), &policy).is_ok());
    assert_eq!(refused(&with("application/jsonx; q"), &policy), "content-type-not-admitted");
}

#[test]
fn no_spelling_of_the_vrf_type_makes_it_opaque() {
    let junk =
        StatementBuilder::new(*b"{}").content_type("Application/VRF+CBOR").kid(KID).iss(ISSUER).sub("s");
    assert!(refused(&signed(junk), &policy()).starts_with("vrf-"));
    let parameter = policy_with("\"text/plain\"", "\"application/vrf+json; version=1.0\"");
    let junk = StatementBuilder::new(*b"{}")
        .content_type("application/vrf+json; version=1.0")
        .kid(KID)
        .iss(ISSUER)
        .sub("s");
    assert!(refused(&signed(junk), &parameter).starts_with("vrf-"));
}

#[test]
fn a_type_may_be_kept_to_some_issuers_algorithms_and_sizes() {
    let statement = signed(note());
    let rule = "content_type = \"application/json\"";
    let with = |more: &str| policy_with(rule, &format!("{rule}\n{more}"));
    assert!(decide(&statement, &with("issuers = [\"https://*.example\"]")).is_ok());
    assert_eq!(refused(&statement, &with("issuers = [\"https://other.example\"]")), "issuer-not-admitted");
    assert!(decide(&statement, &with("algorithms = [\"ES256\"]")).is_ok());
    assert!(
        decide(&statement, &with("algorithms = [\"ESP256\"]")).is_ok(),
        "the same under its other identifier"
    );
    assert_eq!(refused(&statement, &with("algorithms = [\"EdDSA\", \"ES384\"]")), "algorithm-not-accepted");
    let size = statement.bytes().len();
    assert!(decide(&statement, &with(&format!("max_size = {size}"))).is_ok());
    assert_eq!(refused(&statement, &with(&format!("max_size = {}", size - 1))), "too-large");
}

#[test]
fn claims_that_the_policy_asks_for_must_be_there() {
    let asking = policy_with(
        "content_type = \"application/json\"",
        "content_type = \"application/json\"\nclaims = [\"iat\"]",
    );
    assert_eq!(refused(&signed(note()), &asking), "claim-missing");
    assert!(decide(&signed(note().iat(0)), &asking).is_ok());
}

#[test]
fn claims_about_time_become_the_permits_window() {
    let now = i64::try_from(NOW).unwrap();
    let statement = signed(note().claim(5, now.into()).claim(4, (now + 60).into()));
    let permit = decide(&statement, &policy()).unwrap();
    let earliest = NOW - registration::limits::CLOCK_SKEW;
    assert_eq!(permit.valid(), TimeWindow { not_before: Some(earliest), not_after: Some(NOW + 59) });
    assert!(permit.refusal_at(earliest).is_none(), "the issuer's clock may be ahead of the log's");
    assert_eq!(permit.refusal_at(earliest - 1).unwrap().violation.rule.as_str(), "nbf");
    let late = permit.refusal_at(NOW + 60).unwrap().violation;
    assert_eq!(late.rule.as_str(), "exp");
    let time = |seconds| jiff::Timestamp::from_second(seconds).unwrap();
    let detail =
        format!("the log's time is {}, the statement stood until {}", time(now + 60), time(now + 59));
    assert_eq!(late.detail, detail);
    let backwards = signed(note().claim(5, now.into()).claim(4, (now - 600).into()));
    assert_eq!(refused(&backwards, &policy()), "never-valid");
    assert_eq!(refused(&signed(note().claim(4, 0_i64.into())), &policy()), "exp");
}

/// The test policy with a planned end of the log.
fn policy_that_ends(end: &str) -> Policy {
    Policy::from_toml(&policy_toml().replacen("[[issuer]]", &format!("[log]\n{end}\n\n[[issuer]]"), 1))
        .unwrap()
}

#[test]
fn a_permit_holds_up_to_the_number_of_entries_that_the_policy_allows() {
    let permit = decide(&signed(note()), &policy_that_ends("max_entries = 5")).unwrap();
    assert_eq!(permit.largest_tree(), Some(TreeSize::new(5)));
    assert!(permit.refusal_at_leaf(LeafIndex::new(4)).is_none(), "the fifth entry");
    let violation = permit.refusal_at_leaf(LeafIndex::new(5)).unwrap().violation;
    assert_eq!(violation.rule.as_str(), "log-full");
    assert!(violation.detail.contains("5 entries (log.max_entries)"), "{violation}");
    let unbounded = decide(&signed(note()), &policy()).unwrap();
    assert!(unbounded.refusal_at_leaf(LeafIndex::new(u64::MAX)).is_none());
}

#[test]
fn a_permit_holds_before_the_time_at_which_the_policy_ends_the_log() {
    let end = i64::try_from(NOW).unwrap();
    let ends = format!("ends = \"{}\"", jiff::Timestamp::from_second(end).unwrap());
    let ending = policy_that_ends(&ends);
    let permit = decide(&signed(note()), &ending).unwrap();
    assert_eq!(permit.valid(), TimeWindow::until(NOW - 1));
    let violation = permit.refusal_at(NOW).unwrap().violation;
    assert_eq!(violation.rule.as_str(), "log-ended");
    assert!(violation.detail.contains(&ends[8..28]), "{violation}");
    let own = decide(&signed(note().claim(4, (end - 60).into())), &ending).unwrap();
    assert_eq!(own.refusal_at(NOW - 30).unwrap().violation.rule.as_str(), "exp");
    assert_eq!(refused(&signed(note().claim(5, (end + 600).into())), &ending), "never-valid");
}

#[test]
fn statements_of_the_operator_are_admitted_past_the_end_of_the_log() {
    let ended = policy_that_ends("max_entries = 1\nends = \"2020-01-01T00:00:00Z\"");
    let lifted = Policy::from_toml(&policy_toml().replace("revision = 0", "revision = 1")).unwrap();
    let next = statement::sign(&lifted, &ended, &operator()).unwrap();
    let freeze = testkit::operator_action(&Action::Freeze { reason: "done".into() });
    for statement in [next, freeze] {
        let permit = decide(&statement, &ended).unwrap();
        assert_eq!((permit.valid(), permit.largest_tree()), (TimeWindow::ALWAYS, None));
    }
}

#[test]
fn a_detached_payload_is_admitted_where_the_policy_says_so() {
    let detached = |content_type: &'static str| signed(note().content_type(content_type).detached());
    assert!(decide_with(&detached("application/json"), Some(b"{}"), &policy()).is_ok());
    let told = decide_with(&detached("text/plain"), Some(b"{}"), &policy()).unwrap_err();
    assert_eq!(told.rule.as_str(), "detached-payload-not-admitted");
}

#[test]
fn a_hash_stands_for_what_it_is_of_where_the_policy_says_so() {
    let envelope = |algorithm: i64, length: usize, preimage: Option<&str>| {
        let envelope =
            HashEnvelope { algorithm, preimage_content_type: preimage.map(Into::into), location: None };
        let builder = StatementBuilder::new(vec![7; length]).kid(KID).iss(ISSUER).sub("s");
        signed(builder.hash_envelope(&envelope))
    };
    let permit = decide(&envelope(-16, 32, Some("application/json")), &policy()).unwrap();
    assert_eq!(permit.rule().as_str(), "application/json");
    assert_eq!(refused(&envelope(-16, 32, Some("text/plain")), &policy()), "hash-envelope-not-admitted");
    assert_eq!(refused(&envelope(-16, 32, Some("application/vrf+cbor")), &policy()), "vrf-algorithm");
    assert_eq!(refused(&envelope(-16, 32, None), &policy()), "content-type-missing");
    assert_eq!(refused(&envelope(-14, 20, Some("application/json")), &policy()), "hash-envelope-algorithm");
    let policy_type = Some("application/vnd.tabellion.policy+json");
    assert_eq!(refused(&envelope(-16, 32, policy_type), &policy()), "content-type-not-admitted");
}

#[test]
fn a_redacted_vrf_receipt_is_admitted_only_where_the_policy_says_so() {
    let redacted = testkit::receipt(0).redacted().sign(&verifier()).unwrap();
    assert_eq!(refused(&redacted, &policy()), "vrf-redacted");
    let permit = decide(&redacted, &with_vrf("allow_redacted = true")).unwrap();
    let facts = entry_facts(&redacted, permit.facts());
    assert_eq!(facts["redacted"], true);
    assert!(!facts.contains_key("verdict"), "the log does not know it: {facts:?}");
    let mistaken = policy_toml().replacen("issuers = [\"did:key:*\"]", "hash_envelope = true", 1);
    let told = Policy::from_toml(&mistaken).unwrap_err().to_string();
    assert!(told.contains("vrf.allow_redacted"), "{told}");
}

/// The test policy with VRF options.
fn with_vrf(options: &str) -> Policy {
    let issuers = "issuers = [\"did:key:*\"]";
    policy_with(issuers, &format!("{issuers}\n[type.vrf]\n{options}\n"))
}

/// What a log answers that holds these statements, admitted by this policy in this order from leaf 20 on.
fn log_of(policy: &Policy, statements: &[&SignedStatement]) -> impl Fn(&Questions) -> Answers + use<> {
    let permits: Vec<Permit> =
        statements.iter().map(|statement| decide(statement, policy).unwrap()).collect();
    move |asked: &Questions| {
        let mut answers = Answers::none();
        for (leaf, permit) in (20..).map(LeafIndex::new).zip(&permits) {
            if asked.digests.contains(&permit.statement()) {
                answers.put_entry(permit.statement(), leaf);
            }
            for guard in asked.guards.iter().filter(|guard| permit.guards().contains(guard)) {
                answers.put_guard(guard.clone(), leaf);
            }
        }
        answers
    }
}

fn decide_after(
    statement: &SignedStatement,
    policy: &Policy,
    log: impl Fn(&Questions) -> Answers,
) -> Result<Permit, Violation> {
    let in_force = PolicyInForce::new(policy.clone(), LeafIndex::new(7));
    let authenticated = in_force.authenticate(statement, SideData::default()).unwrap();
    let record = Record::read(&authenticated)?;
    let answers = log(&in_force.questions(&authenticated, &record));
    in_force.decide(&authenticated, &record, &answers).into_permit().map_err(violation)
}

fn kinds(permit: &Permit) -> Vec<GuardKind> {
    permit.guards().iter().map(Guard::kind).collect()
}

#[test]
fn a_chained_receipt_claims_its_place_before_its_id() {
    use GuardKind::{VrfGenesis, VrfPlace, VrfPosition, VrfReceiptId, VrfSuccessor};
    let first = testkit::receipt(0).sign(&verifier()).unwrap();
    let second = testkit::receipt(1).after(first.digest(), 1).sign(&verifier()).unwrap();
    assert_eq!(kinds(&decide(&first, &policy()).unwrap()), [VrfGenesis, VrfPlace, VrfReceiptId]);
    let follows = decide_after(&second, &policy(), log_of(&policy(), &[&first])).unwrap();
    assert_eq!(kinds(&follows), [VrfSuccessor, VrfPosition, VrfPlace, VrfReceiptId]);
    let unknown = decide(&second, &policy()).unwrap();
    assert_eq!(kinds(&unknown), [VrfSuccessor, VrfPlace, VrfReceiptId], "it may be at the wrong position");
    assert_eq!(kinds(&decide(&testkit::vrf(2), &policy()).unwrap()), [VrfReceiptId]);
    let off = with_vrf("chain = \"off\"");
    for statement in [&first, &second] {
        assert_eq!(
            kinds(&decide(statement, &off).unwrap()),
            [VrfPlace, VrfReceiptId],
            "a later policy may ask"
        );
    }
}

#[test]
fn a_predecessor_that_comes_in_between_two_looks_at_the_log_is_no_contradiction() {
    let first = testkit::receipt(0).sign(&verifier()).unwrap();
    let second = testkit::receipt(1).after(first.digest(), 1).sign(&verifier()).unwrap();
    let log = log_of(&policy(), &[&first]);
    // The entries were asked for before it came, the claims after.
    let guards_only = |asked: &Questions| {
        let (whole, mut answers) = (log(asked), Answers::none());
        for guard in &asked.guards {
            if let Some(leaf) = whole.guard(guard) {
                answers.put_guard(guard.clone(), leaf);
            }
        }
        answers
    };
    for mode in ["chain = \"linked\"", "chain = \"strict\""] {
        let permit = decide_after(&second, &with_vrf(mode), guards_only).unwrap();
        assert!(permit.facts().contains(r#""chain_verified":true"#), "{mode}: {}", permit.facts());
    }
}

#[test]
fn a_known_predecessor_is_compared_and_an_unknown_one_is_waited_for() {
    let first = testkit::receipt(0).sign(&verifier()).unwrap();
    let second = testkit::receipt(1).after(first.digest(), 1).sign(&verifier()).unwrap();
    let third = testkit::receipt(2).after(first.digest(), 2).sign(&verifier()).unwrap();
    let log = log_of(&policy(), &[&first]);

    let known = decide_after(&second, &policy(), &log).unwrap();
    assert!(known.facts().contains(r#""chain_verified":true"#), "{}", known.facts());
    assert!(known.relied_absent().is_empty());

    let unknown = decide(&second, &policy()).unwrap();
    assert!(unknown.facts().contains(r#""chain_verified":false"#), "{}", unknown.facts());
    assert_eq!(unknown.relied_absent(), [first.digest()], "if it turns up, decide again");
    let free: Vec<GuardKind> = unknown.relied_free().iter().map(Guard::kind).collect();
    assert_eq!(free, [GuardKind::VrfGenesis], "if another first receipt turns up, decide again");

    let misled = testkit::receipt(4).after(testkit::vrf(9).digest(), 1).sign(&verifier()).unwrap();
    let wrong_hash = decide_after(&misled, &policy(), &log).unwrap_err();
    assert_eq!(wrong_hash.rule.as_str(), "vrf-chain-mismatch");
    assert!(wrong_hash.to_string().contains("leaf 20 is number 0 of this chain"), "{wrong_hash}");

    let skipping = decide_after(&third, &policy(), &log).unwrap_err();
    assert_eq!(skipping.rule.as_str(), "vrf-chain-mismatch");
    assert_eq!(skipping.place.to_string(), "protected/-70004");
    assert!(decide(&third, &policy()).is_ok(), "nobody can say yet");
}

#[test]
fn a_strict_policy_wants_every_predecessor_first() {
    let strict = with_vrf("chain = \"strict\"");
    let first = testkit::receipt(0).sign(&verifier()).unwrap();
    let second = testkit::receipt(1).after(first.digest(), 1).sign(&verifier()).unwrap();
    assert_eq!(refused(&second, &strict), "vrf-chain-unknown-predecessor");
    assert_eq!(refused(&testkit::vrf(3), &strict), "vrf-chain-required");
    let permit = decide_after(&second, &strict, log_of(&strict, &[&first])).unwrap();
    assert!(permit.relied_absent().is_empty(), "a strict permit relies on no absence");
}

#[test]
fn the_claims_of_an_admitted_receipt_are_derived_again_from_the_entries_below_it() {
    let first = testkit::receipt(0).sign(&verifier()).unwrap();
    let second = testkit::receipt(1).after(first.digest(), 1).sign(&verifier()).unwrap();
    for mode in ["chain = \"linked\"", "chain = \"strict\""] {
        let policy = with_vrf(mode);
        let log = log_of(&policy, &[&first]);
        let permit = decide_after(&second, &policy, &log).unwrap();
        let in_force = PolicyInForce::new(policy.clone(), LeafIndex::new(7));
        let admitted = in_force.read_again(&second, SideData::default()).unwrap().unwrap();
        let answers = log(&in_force.questions_again(&admitted));
        let claimed = in_force.claimed_again(&admitted, &answers.below(LeafIndex::new(40))).unwrap();
        assert_eq!(claimed, permit.guards(), "{mode}");
        let nothing_below = answers.below(LeafIndex::new(20));
        let claimed = in_force.claimed_again(&admitted, &nothing_below);
        assert_ne!(claimed.as_deref(), Some(permit.guards()), "{mode}: leaf 20 has the first receipt");
    }
}

#[test]
fn a_policy_that_keeps_no_chains_asks_nothing_of_the_log() {
    let off = with_vrf("chain = \"off\"");
    let second = testkit::receipt(1).after(testkit::vrf(9).digest(), 1).sign(&verifier()).unwrap();
    let asked = |questions: &Questions| {
        assert!(questions.is_empty(), "{questions:?}");
        Answers::none()
    };
    let permit = decide_after(&second, &off, asked).unwrap();
    assert!(permit.relied_absent().is_empty() && !permit.facts().contains("chain_verified"));
}

#[test]
fn chain_options_are_checked_when_the_policy_is_read() {
    let told = |options: &str| {
        let issuers = "issuers = [\"did:key:*\"]";
        let text = policy_toml().replacen(issuers, &format!("{issuers}\n[type.vrf]\n{options}\n"), 1);
        Policy::from_toml(&text).unwrap_err().to_string()
    };
    assert!(told("chain = \"loose\"").contains("type[0].vrf.chain: one of \"off\", \"linked\", \"strict\""));
    assert!(told("redacted_issuers = [\"*\"]").contains("without `allow_redacted = true`, no issuer may"));
    let spelled = String::from_utf8(policy().payload().to_vec()).unwrap();
    assert!(spelled.contains(r#""chain":"linked""#), "the default is written out: {spelled}");
}

/// A VRF statement of [`GATEWAY`], a URL whose key the policy lists, signed by this key.
fn vrf_of_url_issuer(key: &dyn Signer) -> SignedStatement {
    let builder = testkit::receipt(1).unchained().builder(key);
    let issuer = scitt::cbor::Value::from(GATEWAY.to_owned());
    builder.iss(GATEWAY).kid(KID).label(-70002, issuer).sign(key).unwrap()
}

#[test]
fn an_issuer_that_is_no_did_key_verifies_with_its_listed_key_where_the_policy_says_so() {
    let types = "issuers = [\"did:key:*\"]";
    let open = "issuers = [\"*\"]\n[type.vrf]\nallow_other_issuers = true\n";
    let open = Policy::from_toml(&policy_toml().replacen(types, open, 1)).unwrap();
    let closed = Policy::from_toml(&policy_toml().replacen(types, "issuers = [\"*\"]", 1)).unwrap();
    let statement = vrf_of_url_issuer(&testkit::gateway());
    decide(&statement, &open).unwrap();
    assert_eq!(refused(&statement, &closed), "vrf-issuer-did-key");
    assert_ne!(refused(&vrf_of_url_issuer(&verifier()), &open), "vrf-issuer-did-key", "another key signed");
    let unlisted =
        policy_toml().replacen(types, "issuers = [\"*\"]\n[type.vrf]\nallow_other_issuers = true\n", 1);
    let unlisted = Policy::from_toml(&unlisted.replace(GATEWAY, "https://other.example")).unwrap();
    assert_eq!(refused(&statement, &unlisted), "issuer-unknown");
}

#[test]
fn two_receipts_of_one_id_share_a_guard_and_others_do_not() {
    let guards = |statement: &SignedStatement| {
        let permit = decide(statement, &policy()).unwrap();
        permit.guards().iter().find(|guard| guard.kind() == GuardKind::VrfReceiptId).cloned()
    };
    assert_eq!(guards(&testkit::vrf(1)), guards(&testkit::receipt(1).sign(&verifier()).unwrap()));
    assert_ne!(guards(&testkit::vrf(1)), guards(&testkit::vrf(2)));
    let other = testkit::receipt(1).sign(&testkit::ed25519([7; 32])).unwrap();
    assert_ne!(guards(&testkit::vrf(1)), guards(&other));
}

#[test]
fn a_taken_guard_refuses_by_the_rule_that_it_keeps() {
    let permit = decide(&testkit::vrf(1), &policy()).unwrap();
    let refusal = permit.refusal_for_guard(permit.guards()[0].as_bytes(), LeafIndex::new(12));
    assert_eq!(refusal.violation.rule.as_str(), "vrf-receipt-id-unique");
    assert!(refusal.violation.detail.contains("12"), "{refusal}");
}

#[test]
fn the_first_policy_is_admitted_by_itself() {
    let (in_force, permit) = statement::genesis(&policy_statement()).unwrap();
    assert_eq!((in_force.leaf(), in_force.policy()), (LeafIndex::new(0), &policy()));
    assert_eq!((permit.policy(), permit.rule().as_str()), (LeafIndex::new(0), "policy"));
    assert_eq!(permit.successor(), Some(&policy()));
}

#[test]
fn a_first_policy_that_is_not_one_is_refused() {
    let genesis =
        |statement: &SignedStatement| statement::genesis(statement).map(|_| ()).unwrap_err().rule.to_string();
    assert_eq!(genesis(&testkit::opaque("s", &json!({}))), "content-type-not-admitted");
    let later = policy_with("revision = 0", "revision = 1");
    assert_eq!(genesis(&statement::sign(&later, &later, &operator()).unwrap()), "policy-revision");
    let listed = operator().public_key().thumbprint().to_vec();
    let subject =
        StatementBuilder::new(policy().payload()).content_type("application/vnd.tabellion.policy+json");
    let subject =
        subject.kid(listed.clone()).iss(testkit::LOG_ISS).sub("elsewhere").sign(&operator()).unwrap();
    assert_eq!(genesis(&subject), "policy-subject");
    let payload = [policy().payload(), b" "].concat();
    let spaced = StatementBuilder::new(payload).content_type("application/vnd.tabellion.policy+json");
    let spaced = spaced.kid(listed).iss(testkit::LOG_ISS).sub(ORIGIN).sign(&operator()).unwrap();
    assert_eq!(genesis(&spaced), "policy-payload");
}

#[test]
fn a_policy_follows_if_the_operator_in_force_signed_the_next_revision() {
    let next = policy_with("revision = 0", "revision = 1");
    let permit = decide(&statement::sign(&next, &policy(), &operator()).unwrap(), &policy()).unwrap();
    assert_eq!(permit.successor(), Some(&next));
    assert_eq!(permit.rule().as_str(), "policy");
    let skipping = policy_with("revision = 0", "revision = 2");
    assert_eq!(
        refused(&statement::sign(&skipping, &policy(), &operator()).unwrap(), &policy()),
        "policy-revision"
    );
    assert_eq!(refused(&policy_statement(), &policy()), "policy-revision");
    let other = policy_with("revision = 0", "revision = 1").contents().origin.clone();
    assert_eq!(other, ORIGIN);
    let moved = Policy::from_toml(
        &policy_toml().replace(ORIGIN, "log.example/other").replace("revision = 0", "revision = 1"),
    )
    .unwrap();
    assert_eq!(
        refused(&statement::sign(&moved, &policy(), &operator()).unwrap(), &policy()),
        "policy-identity"
    );
}

#[test]
fn two_policies_of_one_revision_share_a_guard() {
    let permit = |policy_next: &Policy| {
        decide(&statement::sign(policy_next, &policy(), &operator()).unwrap(), &policy()).unwrap()
    };
    let one = permit(&policy_with("revision = 0", "revision = 1"));
    let text = policy_toml().replace("revision = 0", "revision = 1").replace("4096", "8192");
    let two = permit(&Policy::from_toml(&text).unwrap());
    assert_ne!(one.statement(), two.statement());
    assert_eq!(one.guards()[0], two.guards()[0]);
    assert_ne!(one.guards()[1], two.guards()[1], "each says of itself that it is never erased");
    assert_eq!((one.guards().len(), two.guards().len()), (2, 2));
}

#[test]
fn a_key_that_the_policy_in_force_does_not_list_signs_no_policy() {
    let next = policy_with("revision = 0", "revision = 1");
    assert!(statement::sign(&next, &policy(), &verifier()).is_err());
}

#[test]
fn a_configured_policy_is_kept_published_or_refused_naming_both() {
    let next = policy_with("revision = 0", "revision = 1");
    assert_eq!(statement::step(&policy(), &policy()), Ok(Step::Keep));
    assert_eq!(statement::step(&policy(), &next), Ok(Step::Publish));
    assert!(matches!(
        statement::step(&next, &policy()),
        Err(PolicyConflict::Revision { log: 1, configured: 0, .. })
    ));
    let changed = policy_with("4096", "8192");
    let told = statement::step(&policy(), &changed).unwrap_err().to_string();
    assert!(
        told.contains(&policy().digest().to_string()) && told.contains(&changed.digest().to_string()),
        "{told}"
    );
    let moved = policy_with(ORIGIN, "log.example/other");
    assert!(matches!(statement::step(&policy(), &moved), Err(PolicyConflict::AnotherLog { .. })));
}

#[test]
fn a_development_log_takes_what_its_gateway_says_and_nothing_else_from_it() {
    let (gateway, issuer) = (testkit::gateway(), es256());
    let (operator, index) = (operator(), verifier());
    let (operator, index) = (operator.public_key(), index.public_key());
    let log = Identity { iss: "https://log.example", origin: ORIGIN, operator, index };
    let text = for_dev(
        log,
        Trusted { iss: ISSUER, key: issuer.public_key() },
        Trusted { iss: GATEWAY, key: gateway.public_key() },
    );
    let policy = Policy::from_toml(&text).unwrap();
    let by = |content_type: &'static str, payload: &Value, iss: &str| {
        let kid = gateway.public_key().thumbprint();
        let builder =
            StatementBuilder::new(jose::jcs::canonical(payload)).content_type(content_type).kid(kid);
        builder.iss(iss).sub("session-1").sign(&gateway).unwrap()
    };
    let closed = testkit::audit_json("closed", "session-1", 0);
    decide(&by("application/vap-audit+json", &closed, GATEWAY), &policy).unwrap();
    decide(&by("application/jwk-set+json", &testkit::jwk_set_json(), GATEWAY), &policy).unwrap();
    assert!(decide(&by("application/json", &json!({}), GATEWAY), &policy).is_err());
    assert!(decide(&by("application/vap-audit+json", &closed, ISSUER), &policy).is_err());
}

#[test]
fn r36_a_clock_correction_holds_between_the_true_time_and_the_one_that_was_ahead() {
    let correction = ClockCorrection {
        size: TreeSize::new(9),
        committed_at: NOW + 1000,
        time: NOW,
        reason: "a host without time".into(),
    };
    let in_force = policy();
    let operators = &in_force.contents().operators;
    let statement =
        clock_correction::sign(&correction, (testkit::LOG_ISS, ORIGIN), operators, &operator()).unwrap();
    let permit = decide(&statement, &policy()).unwrap();
    assert_eq!(permit.clock_correction(), Some(&correction));
    assert_eq!(permit.valid(), TimeWindow { not_before: Some(NOW), not_after: Some(NOW + 999) });
    assert!(permit.guards().iter().any(|guard| guard.kind() == GuardKind::Permanent));
    let in_force = PolicyInForce::new(policy(), LeafIndex::new(7));
    assert_eq!(in_force.clock_correction(&statement), Some(correction.clone()));
    let explains = |at| correction.explains(TreeSize::new(9), NOW + 1000, at);
    assert_eq!([NOW - 1, NOW, NOW + 999, NOW + 1000].map(explains), [false, true, true, false]);

    let by_another = ClockCorrection { time: NOW + 1000, ..correction.clone() };
    let no_operator = clock_correction::sign(&correction, (testkit::LOG_ISS, ORIGIN), operators, &es256());
    assert!(matches!(no_operator, Err(SignError::NotAnOperator(_))));
    let later = clock_correction::sign(&by_another, (testkit::LOG_ISS, ORIGIN), operators, &operator());
    assert!(matches!(later, Err(SignError::Violates(_))), "the true time is not earlier");
    let of_another_log =
        clock_correction::sign(&correction, (testkit::LOG_ISS, "other.example"), operators, &operator());
    assert_eq!(refused(&of_another_log.unwrap(), &policy()), "clock-correction-subject");
    let forged = StatementBuilder::new(correction.payload())
        .content_type(registration::CLOCK_CORRECTION_CONTENT_TYPE)
        .kid(KID)
        .iss(ISSUER)
        .sub(ORIGIN);
    assert_eq!(refused(&signed(forged), &policy()), "policy-issuer");
    assert_eq!(in_force.clock_correction(&testkit::opaque("x", &json!({}))), None);
}

#[test]
fn a_head_of_the_index_needs_a_key_that_the_policy_lists_for_the_index() {
    let index_key = verifier();
    let mut document: toml::Table = toml::from_str(&policy_toml()).unwrap();
    let rules = json!({
        "table": format!("sha256:{}", "ab".repeat(32)),
        "keys": [index_key.public_key().did_key()],
        "every": 60,
    });
    document.insert("index".to_owned(), toml::Value::try_from(rules).unwrap());
    let with_index = Policy::from_toml(&document.to_string()).unwrap();
    let rules = with_index.contents().index.as_ref().unwrap();
    let head = IndexHead {
        series: rules.series(),
        size: TreeSize::new(7),
        log_root: RootHash::from_bytes([1; 32]),
        horizon: LeafIndex::new(0),
        runs: vec![HeadRun { id: RunId::TAIL, summary: RunSummary::of(&[]).unwrap() }],
    };
    let log = (testkit::LOG_ISS, ORIGIN);
    let statement = index_head::sign(&head, NOW, log, rules, &index_key).unwrap();
    let permit = decide(&statement, &with_index).unwrap();
    assert_eq!(permit.rule().as_str(), index_head::INDEX_HEAD_RULE);
    assert_eq!(permit.valid(), TimeWindow { not_before: Some(NOW - 300), not_after: Some(NOW + 60) });
    let kinds: Vec<GuardKind> = permit.guards().iter().map(Guard::kind).collect();
    assert_eq!(kinds, [GuardKind::IndexHead, GuardKind::Permanent]);

    assert_eq!(refused(&statement, &policy()), "key-not-bound-to-issuer", "this policy has no index");
    let by_operator = index_head::sign(&head, NOW, log, rules, &operator());
    assert!(matches!(by_operator, Err(SignError::NotAnIndexKey(_))));
    let no_runs = IndexHead { runs: vec![], series: Hash::from_bytes([0; 32]), ..head };
    let no_runs = index_head::sign(&no_runs, NOW, log, rules, &index_key);
    assert!(matches!(no_runs, Err(SignError::Violates(_))));
    let of_an_issuer = signed(note().content_type(HEAD_CONTENT_TYPE));
    assert_eq!(refused(&of_an_issuer, &with_index), "policy-issuer");
}
