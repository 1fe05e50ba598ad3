//! The records of decisions: X-5, 4.9, 4.10, readings V-22, V-24, V-25, V-39, V-40.

use admission::record::{self, OutcomeRecord, RecordPosition};
use admission::session::Meters;
use serde_json::{Value, json};
use vap::audit::{AuditKind, AuditRecord, CallStatus};
use vap::digest::Canon;
use vap::record_key::{RecordKey, StreamKey};
use vap::verdict::Verdict;

use crate::world::{GATEWAY, SESSION, Try, alice, amendment, commitment, key, mallory, signed, world};

fn last(world: &crate::world::World) -> Value {
    serde_json::from_slice(&world.records.last().unwrap().1).unwrap()
}

#[test]
fn x_5_the_numbers_of_a_stream_have_no_gaps() {
    let mut world = world().with_session(json!({ "max_calls": 5 }));
    world.served(&Try::of("crm.read", json!({})));
    world.denied(&Try::of("shell.run", json!({})));
    world.denied(&Try::of("crm.read", json!({})).by(mallory()));
    let digest = world.session().agreed.digest().to_string();
    let message = amendment(&digest, json!({ "add_scope": { "tools_allow": ["x"] } }));
    world.commit(&alice(), &signed(&message, &key(1), json!({})));
    let records = world.records.iter().filter(|(stream, _)| stream == SESSION);
    let seqs: Vec<_> = records.map(|(_, bytes)| AuditRecord::read(bytes).unwrap().seq).collect();
    assert_eq!(seqs, [0, 1, 2, 3]);
    let kinds: Vec<_> =
        world.records.iter().map(|(_, bytes)| AuditRecord::read(bytes).unwrap().kind).collect();
    assert!(matches!(kinds[0], AuditKind::Commitment(_)) && matches!(kinds[1], AuditKind::Decision(_)));
    assert!(matches!(kinds[4], AuditKind::Amendment(_)));
}

#[test]
fn v_40_nothing_that_was_said_is_in_a_record() {
    let mut world = world().with_session(json!({ "max_calls": 5 }));
    world.served(&Try::of("crm.read", json!({ "secret": "hunter2" })));
    for (_, bytes) in &world.records {
        let text = String::from_utf8_lossy(bytes);
        for said in ["hunter2", "SUP-9931", "the ticket says so", "one ticket is read", "alice"] {
            assert!(!text.contains(said), "{said} in {text}");
        }
    }
    let record = last(&world);
    let committed: Vec<_> = record["committed"].as_object().unwrap().keys().map(String::as_str).collect();
    let all =
        ["arguments", "effective_commitment", "expected_effect", "goal", "principal", "rationale", "verdict"];
    assert_eq!(committed, all);
    let digest = world.session().agreed.digest().to_string();
    assert!(!record.to_string().contains(&digest), "the plain commitment digest stays off the log");
}

#[test]
fn v_40_the_key_of_one_record_opens_it_and_no_other() {
    let mut world = world().with_session(json!({ "max_calls": 5 }));
    world.served(&Try::of("crm.read", json!({ "ticket": 9931 })));
    world.served(&Try::of("crm.read", json!({ "ticket": 9931 })));
    let keys: Vec<_> = [1, 2].map(|seq| world.session().agreed.key().record(seq).to_text()).into();
    let opened = RecordKey::from_text(&keys[0]).unwrap().commit("arguments", br#"{"ticket":9931}"#);
    let committed = |at: usize| -> Value {
        serde_json::from_slice::<Value>(&world.records[at].1).unwrap()["committed"]["arguments"].clone()
    };
    assert_eq!(committed(1), opened);
    assert_ne!(committed(2), opened, "equal arguments do not look equal");
}

#[test]
fn v_24_the_verdict_that_a_record_commits_to_has_neither_result_nor_place_nor_signature() {
    let mut world = world().with_session(json!({ "max_calls": 5 }));
    let ruling = world.served(&Try::of("crm.read", json!({})));
    let audit_ref = Some("https://log.example/entries/00".to_owned());
    let told = Verdict { audit_ref, ..ruling.verdict.clone() };
    let key = world.session().agreed.key().record(1);
    assert_eq!(last(&world)["committed"]["verdict"], key.commit("verdict", &told.to_record()));
    assert_eq!(told.to_value().get("result"), None);
}

#[test]
fn v_25_a_record_repeats_what_the_verdicts_signature_binds() {
    let mut world = world().with_session(json!({ "max_calls": 5 }));
    let ruling = world.served(&Try::of("crm.read", json!({})));
    let binding = &last(&world)["binding"];
    let req = jose::jcs::canonical(&ruling.ruling.req.unwrap().as_str().into());
    assert_eq!((&binding["iat"], &binding["jti"]), (&json!(1), &json!("jti-1")));
    assert_eq!(binding["req"], world.session().agreed.key().record(1).commit("req", &req));
}

#[test]
fn v_22_what_jcs_would_change_is_committed_to_as_it_came() {
    let mut world = world().with_session(json!({ "max_calls": 5 }));
    let arguments = r#"{"n":9007199254740993}"#;
    world.served(&Try::of("crm.read", serde_json::from_str(arguments).unwrap()));
    let record = last(&world);
    assert_eq!(record["canon"], "raw");
    let key = world.session().agreed.key().record(1);
    assert_eq!(record["committed"]["arguments"], key.commit("arguments", arguments.as_bytes()));
}

#[test]
fn meters_stand_in_a_record_as_decimals() {
    let mut world = world().with_session(json!({ "max_calls": 5, "limits": { "usd": 1, "tokens": 1e20 } }));
    world.ran(&Try::of("crm.read", json!({})), Some(r#"{"usd":0.1,"tokens":1e19}"#));
    world.served(&Try::of("crm.read", json!({})));
    let meters = json!({ "tokens": "20000000000000000000", "usd": "0.2", "vap.calls": "2" });
    assert_eq!(last(&world)["meters"], meters);
}

#[test]
fn x_5_an_outcome_names_its_decision_and_commits_to_the_result() {
    let key = StreamKey::new([1; 32]);
    let place = RecordPosition { gateway: GATEWAY, stream: SESSION, seq: 2, at: world().now, key: &key };
    let settled: Meters = [("usd".to_owned(), 1u64.into())].into_iter().collect();
    let result = Canon { bytes: b"{}".to_vec(), raw: true };
    for status in [CallStatus::Executed, CallStatus::Errored, CallStatus::Refused, CallStatus::Unknown] {
        let decision = "ab".repeat(32);
        let came = OutcomeRecord {
            decision: decision.parse().unwrap(),
            status,
            settled: &settled,
            result: Some(&result),
        };
        let bytes = record::outcome(&place, &came);
        let AuditKind::Outcome(outcome) = AuditRecord::read(&bytes).unwrap().kind else { panic!() };
        assert_eq!((outcome.decision.to_string(), outcome.status.as_str()), (decision, status.as_str()));
    }
    let closed = AuditRecord::read(&record::closed(&place)).unwrap();
    assert_eq!((closed.kind, closed.seq), (AuditKind::Closed, 2));
}

#[test]
fn names_that_a_record_cannot_hold_are_left_out_and_flagged() {
    let mut world = world();
    world.rules.posture = admission::rules::Posture::Advisory;
    for tool in ["", "a\u{7}b", &"x".repeat(300)] {
        let ruling = world.ruled(&Try::of(tool, json!({})).without_vap());
        assert!(ruling.flags.contains(&admission::decide::Flag::ToolUnnamed));
    }
    world.commit(&alice(), &commitment(json!({ "limits": { "a meter": 1 } })));
    assert_eq!(last(&world)["meters"]["a meter"], "0");
}
