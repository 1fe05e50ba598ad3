//! Entries past the end that a policy plans for its log.

use std::sync::Arc;

use audit::{AuditReport, LogRule};
use registration::Policy;
use registration::operator::Action;
use serde_json::json;
use store::Memory;
use testkit::{NOW, operator_action, policy_toml};

use crate::clean::audited;
use crate::log::Log;

/// A log whose policy plans this end.
async fn ending(end: &str) -> Log {
    let toml = policy_toml().replacen("[[issuer]]", &format!("[log]\n{end}\n\n[[issuer]]"), 1);
    Log::under(Arc::new(Memory::new()), &Policy::from_toml(&toml).unwrap()).await
}

async fn note(log: &mut Log, sub: &str) {
    log.register(vec![testkit::opaque(sub, &json!({})).into()]).await;
}

fn found(report: &AuditReport) -> Vec<(LogRule, Option<u64>)> {
    report.findings.iter().map(|finding| (finding.rule, finding.leaf)).collect()
}

#[tokio::test]
async fn an_entry_beyond_the_number_that_the_policy_allows_is_found_and_one_of_the_operator_is_not() {
    let mut log = ending("max_entries = 3").await;
    note(&mut log, "second").await;
    note(&mut log, "third").await;
    log.register(vec![log.revised(&policy_toml()).into()]).await;
    note(&mut log, "after the bound was lifted").await;
    assert_eq!(found(&audited(&*log.store).await), []);

    let mut log = ending("max_entries = 2").await;
    note(&mut log, "second").await;
    note(&mut log, "third").await;
    log.register(vec![operator_action(&Action::Freeze { reason: "full".into() }).into()]).await;
    let report = audited(&*log.store).await;
    assert_eq!(found(&report), [(LogRule::Refused, Some(2))]);
    assert!(report.findings[0].detail.contains("log-full"), "{:?}", report.findings);
}

#[tokio::test]
async fn an_entry_from_the_end_of_the_log_on_is_found_and_one_of_the_operator_is_not() {
    // Each batch is a second after the one before it, and the first one is that of the policy.
    assert_eq!(NOW, 1_793_491_200, "2026-11-01T00:00:00Z");
    let mut log = ending("ends = \"2026-11-01T00:00:02Z\"").await;
    note(&mut log, "in time").await;
    note(&mut log, "late").await;
    log.register(vec![operator_action(&Action::Freeze { reason: "ended".into() }).into()]).await;
    let report = audited(&*log.store).await;
    assert_eq!(found(&report), [(LogRule::Time, Some(2))]);
    assert!(report.findings[0].detail.contains("log-ended"), "{:?}", report.findings);
}
