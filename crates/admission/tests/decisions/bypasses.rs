//! The five ways around the public reference of VAP, as one by one they were shown to work there.

use serde_json::json;
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use crate::world::{Try, alice, amendment, commitment, envelope, key, signed, world};

#[test]
fn bypass_1_a_harmless_tool_is_declared_and_another_is_called() {
    let mut world = world().with_session(json!({ "max_calls": 5 }));
    let attempt = Try { tool: "pay".into(), ..Try::of("crm.read", json!({})) };
    assert_eq!(world.denied(&attempt), Reason::CallMismatch);
    assert_eq!(world.session().running.calls(), 0);
}

#[test]
fn bypass_2_to_commit_again_does_not_reset_the_counters() {
    let mut world = world().with_session(json!({ "max_calls": 1 }));
    world.ran(&Try::of("crm.read", json!({})), None);
    let again = world.commit(&alice(), &commitment(json!({ "max_calls": 1 })));
    assert_eq!(again.reason, Some(Reason::SessionInUse));
    assert_eq!(world.denied(&Try::of("crm.read", json!({}))), Reason::BudgetExceeded);
}

#[test]
fn bypass_3_an_amendment_with_a_wrong_digest_or_a_junk_signature_changes_nothing() {
    let mut world = world().with_session(json!({ "max_calls": 1 }));
    let more = json!({ "increase_budget": { "add_calls": 100 } });
    let digest = world.session().agreed.digest().to_string();
    let elsewhere = signed(&amendment("sha256:00", more.clone()), &key(1), json!({}));
    let mut junk = amendment(&digest, more);
    junk["signature"] = "junk".into();
    for (message, reason) in [(elsewhere, Reason::ChainBroken), (junk, Reason::InvalidSignature)] {
        assert_eq!(world.commit(&alice(), &message).reason, Some(reason));
    }
    assert_eq!(world.session().agreed.budget().max_calls, Some(1));
}

#[test]
fn bypass_4_an_amendment_that_is_not_accepted_has_not_widened_the_scope() {
    let mut world = world().with_session(json!({ "max_calls": 9 }));
    let digest = world.session().agreed.digest().to_string();
    let message = amendment(&digest, json!({ "add_scope": { "tools_allow": ["*"] } }));
    let ruling = world.commit(&alice(), &message);
    assert_eq!(
        (ruling.verdict.verdict, ruling.reason),
        (VerdictKind::Denied, Some(Reason::SignatureRequired))
    );
    assert_eq!(world.session().agreed.digest().as_str(), digest);
    assert_eq!(world.denied(&Try::of("shell.run", json!({}))), Reason::ScopeEscape);
}

#[test]
fn bypass_5_a_deadline_that_cannot_be_read_is_not_ignored() {
    let mut world = world();
    for deadline in ["tomorrow", "2026-12-01", "2026-12-01T00:00:00"] {
        let ruling = world.commit(&alice(), &commitment(json!({ "deadline": deadline })));
        assert_eq!(ruling.reason, Some(Reason::MalformedDeadline), "{deadline}");
    }
    let call = Try::of("crm.read", json!({})).with(envelope("crm.read", json!({})));
    assert_eq!(world.denied(&call), Reason::NoCommitment);
}
