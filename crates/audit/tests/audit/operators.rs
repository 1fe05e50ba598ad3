//! What the operators of a log did, by the log alone.

use std::sync::Arc;

use audit::{HeldFor, LogRule};
use merkle::EntryDigest;
use registration::Policy;
use registration::operator::{
    Action, Approval, FREEZE_RULE, OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE, Pending,
    sign,
};
use scitt::{SignedStatement, Signer, SigningKey};
use serde_json::json;
use store::{Memory, NewEntry};
use testkit::{LOG_ISS, NOW, ORIGIN, operator, operator_action, verifier};

use crate::clean::audited;
use crate::log::Log;

const EXPIRES: u64 = NOW + 3600;

fn freeze() -> Action {
    Action::Freeze { reason: "replaced".into() }
}

/// A log of which two operators must agree to a freeze.
async fn of_two() -> Log {
    let second = format!(
        "[[operator]]\nkey = \"{}\"\n\n[operator_actions]\nrequired = 2\n\n[[issuer]]",
        verifier().public_key().did_key()
    );
    let policy = Policy::from_toml(&testkit::policy_toml().replacen("[[issuer]]", &second, 1)).unwrap();
    Log::under(Arc::new(Memory::new()), &policy).await
}

fn by(
    log: &Log,
    key: &SigningKey,
    content_type: &str,
    payload: Vec<u8>,
    expires: Option<u64>,
) -> SignedStatement {
    let operators = &log.in_force.policy().contents().operators;
    sign(content_type, payload, expires, (LOG_ISS, ORIGIN), operators, key).unwrap()
}

fn approved(log: &Log, key: &SigningKey) -> SignedStatement {
    let pending = Pending::of(OPERATOR_ACTION_CONTENT_TYPE, &freeze().payload(), EXPIRES);
    by(log, key, OPERATOR_APPROVAL_CONTENT_TYPE, Approval(pending).payload(), None)
}

fn frozen(log: &Log) -> SignedStatement {
    by(log, &operator(), OPERATOR_ACTION_CONTENT_TYPE, freeze().payload(), Some(EXPIRES))
}

#[tokio::test]
async fn who_held_released_and_froze_what_is_told_and_an_entry_after_the_end_is_found() {
    let mut log = Log::under(Arc::new(Memory::new()), &testkit::policy()).await;
    let notes = [testkit::opaque("one", &json!({})), testkit::opaque("other", &json!({}))];
    log.register(notes.iter().cloned().map(Into::into).collect()).await;
    let [one, other] = [&notes[0], &notes[1]].map(SignedStatement::digest);
    for (entry, number) in [(one, 0), (other, 0), (one, 1)] {
        log.register(vec![operator_action(&Action::numbered(entry, "2026-17", number)).into()]).await;
    }
    log.register(vec![operator_action(&freeze()).into()]).await;
    let report = audited(&*log.store).await;
    assert_eq!(report.findings, []);
    let told: Vec<(&str, u64)> = report.actions.iter().map(|act| (&*act.action, act.leaf)).collect();
    assert_eq!(told, [("hold", 3), ("hold", 4), ("release", 5), ("freeze", 6)]);
    assert!(report.actions.iter().all(|act| act.operator == operator().public_key().did_key()));
    assert!(report.actions.iter().all(|act| act.at.is_some()));
    assert_eq!(report.held, [HeldFor { entry: other.to_string(), case: "2026-17".into() }]);

    log.register(vec![testkit::opaque("late", &json!({})).into()]).await;
    let report = audited(&*log.store).await;
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.rule, finding.leaf)).collect();
    assert_eq!(found, [(LogRule::AfterFreeze, Some(7))]);
}

#[tokio::test]
async fn a_freeze_that_two_operators_agreed_to_is_admitted_again() {
    let mut log = of_two().await;
    assert!(log.admit(&frozen(&log).into()).await.unwrap_err().contains("1 of 2 operators"));
    log.register(vec![approved(&log, &verifier()).into()]).await;
    log.register(vec![frozen(&log).into()]).await;
    let report = audited(&*log.store).await;
    assert_eq!((&report.findings[..], report.counts.same), (&[][..], 3));
}

/// Whoever has the database may enter what the policy would have refused; the log tells.
#[tokio::test]
async fn a_freeze_that_one_operator_agreed_to_is_found() {
    let mut log = of_two().await;
    log.register(vec![approved(&log, &operator()).into()]).await;
    let statement = frozen(&log);
    let entry = NewEntry {
        digest: EntryDigest::of(statement.bytes()),
        twin: None,
        statement: statement.bytes().clone(),
        policy: log.in_force.leaf(),
        rule: FREEZE_RULE.into(),
        facts: "{}".into(),
        guards: Vec::new(),
        collateral: Vec::new(),
    };
    log.smuggle(vec![entry]).await;
    let report = audited(&*log.store).await;
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert_eq!((finding.rule, finding.leaf), (LogRule::Refused, Some(2)));
    assert!(finding.detail.contains("operator-approvals"), "{finding}");
}
