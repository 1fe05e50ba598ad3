//! What an honest log says.

use std::sync::Arc;

use audit::{Audit, AuditError, AuditReport, AuditState, AuditStateError, Explains, LogRule, StoreSource};
use merkle::LeafIndex;
use registration::Policy;
use registration::erasure::{NewErasure, sign};
use scitt::StatementBuilder;
use scitt::header::CertHash;
use store::{LogStore, LogWriter, Memory};
use testkit::{ISSUER, KID, LOG_ISS, ORIGIN};

use crate::log::Log;
use crate::mixed::{KINDS, Mixer};

/// Audits a log from its first leaf to its head.
pub async fn audited(store: &dyn LogStore) -> AuditReport {
    let source = StoreSource::new(store);
    let mut audit = Audit::begin(&source, AuditState::default()).await.unwrap();
    while audit.step().await.unwrap() {}
    audit.settle().await.unwrap();
    audit.report()
}

pub async fn mixed_log(store: Arc<dyn LogStore>, batches: usize) -> (Log, Mixer) {
    let mut mixer = Mixer::default();
    let mut log = Log::under(store, &mixer.policy()).await;
    for _ in 0..batches {
        log.register(mixer.batch(KINDS as usize * 2)).await;
    }
    (log, mixer)
}

#[tokio::test]
async fn every_content_type_is_admitted_again() {
    let (log, _) = mixed_log(Arc::new(Memory::new()), 4).await;
    let report = audited(&*log.store).await;
    assert_eq!(report.findings, []);
    assert_eq!(report.counts.entries, log.size());
    assert_eq!((report.counts.dropped, report.counts.undecided, report.counts.differ), (8, 0, 0));
    assert_eq!(report.counts.same, log.size() - 8);
    assert_eq!((report.counts.heads, report.counts.signatures), (5, 5));
    let (leaf, explanation) = &report.explained[0];
    assert_eq!((leaf.get(), explanation.kind, explanation.entries), (0, Explains::Policy, 8));
}

/// Registers the erasure of these leaves, and erases them.
pub async fn erase(log: &mut Log, sequence: u64, leaves: &[u64]) -> u64 {
    let leaves: Vec<LeafIndex> = leaves.iter().copied().map(LeafIndex::new).collect();
    let mut entries = Vec::new();
    for leaf in &leaves {
        entries.push(log.store.entry(*leaf).await.unwrap().unwrap().digest);
    }
    entries.sort();
    let erasure = NewErasure {
        sequence,
        entries,
        reason: "the subject asked for it".into(),
        rule: "request".into(),
        at: None,
        authorized_by: None,
    };
    let operators = &log.in_force.policy().contents().operators;
    let statement = sign(&erasure, (LOG_ISS, ORIGIN), operators, &testkit::operator()).unwrap();
    let leaf = log.register(vec![statement.into()]).await;
    log.store.erase(&leaves).await.unwrap();
    leaf
}

#[tokio::test]
async fn what_was_erased_is_counted_by_the_statement_that_says_so() {
    let (mut log, _) = mixed_log(Arc::new(Memory::new()), 2).await;
    let (first, second) = (erase(&mut log, 0, &[3, 8, 6]).await, erase(&mut log, 1, &[12]).await);
    let report = audited(&*log.store).await;
    assert_eq!(report.findings, []);
    assert_eq!(report.counts.erased, 4);
    let explained: Vec<_> =
        report.explained.iter().map(|(leaf, it)| (leaf.get(), it.kind, it.entries)).collect();
    let expected = [(0, Explains::Policy, 4), (first, Explains::Erasure, 3), (second, Explains::Erasure, 1)];
    assert_eq!(explained, expected);
}

#[tokio::test]
async fn what_is_erased_while_the_audit_walks_is_explained_by_what_was_committed_meanwhile() {
    let (mut log, _) = mixed_log(Arc::new(Memory::new()), 6).await;
    let store = Arc::clone(&log.store);
    let source = StoreSource::new(&*store);
    let mut audit = Audit::begin(&source, AuditState::default()).await.unwrap();
    assert!(audit.step().await.unwrap());
    erase(&mut log, 0, &[70, 100]).await;
    while audit.step().await.unwrap() {}
    assert_eq!(audit.report().findings.len(), 2, "nothing explains it yet");
    audit.settle().await.unwrap();
    let report = audit.report();
    assert_eq!((report.findings, report.counts.erased), (vec![], 2));
    assert_eq!(report.size.get(), log.size());
}

/// The operator's key is bound by the policy, whatever certificate the header names: there is no chain to keep.
#[tokio::test]
async fn an_erasure_or_policy_that_names_a_certificate_is_admitted_again() {
    let mut log = Log::under(Arc::new(Memory::new()), &testkit::policy()).await;
    let revised = log.revised(&(testkit::policy_toml() + "\n[[type]]\ncontent_type = \"text/html\"\n"));
    let leaf = log.register(vec![testkit::opaque("a", &serde_json::json!({})).into()]).await;
    let entry = log.store.entry(LeafIndex::new(leaf)).await.unwrap().unwrap().digest;
    let erasure = NewErasure {
        sequence: 0,
        entries: vec![entry],
        reason: "the subject asked for it".into(),
        rule: "request".into(),
        at: None,
        authorized_by: None,
    };
    let operators = &log.in_force.policy().contents().operators;
    let erasure = sign(&erasure, (LOG_ISS, ORIGIN), operators, &testkit::operator()).unwrap();
    for statement in [erasure, revised] {
        let header = statement.header();
        let hash = CertHash { algorithm: scitt::x509::SHA_256.into(), hash: vec![7; 32].into() };
        let named = StatementBuilder::new(statement.payload().unwrap().to_vec())
            .content_type(header.content_type().unwrap().as_text().unwrap())
            .kid(header.kid().unwrap().as_ref())
            .iss(LOG_ISS)
            .sub(ORIGIN)
            .x5t(&hash)
            .sign(&testkit::operator())
            .unwrap();
        log.register(vec![named.into()]).await;
    }
    log.store.erase(&[LeafIndex::new(leaf)]).await.unwrap();
    let report = audited(&*log.store).await;
    assert_eq!((report.findings, report.counts.erased, report.counts.same), (vec![], 1, 3));
}

#[tokio::test]
async fn an_erasure_that_lists_others_explains_nothing() {
    let (mut log, _) = mixed_log(Arc::new(Memory::new()), 1).await;
    erase(&mut log, 0, &[3]).await;
    log.store.erase(&[LeafIndex::new(4)]).await.unwrap();
    let report = audited(&*log.store).await;
    let [finding] = &report.findings[..] else { panic!("{:#?}", report.findings) };
    assert_eq!((finding.rule, finding.leaf), (LogRule::ErasedUnexplained, Some(4)));
}

#[tokio::test]
async fn an_audit_that_is_put_down_at_every_page_finds_the_same() {
    let (mut log, mut mixer) = mixed_log(Arc::new(Memory::new()), 4).await;
    let revised = log.revised(&(mixer.toml() + "\n[[type]]\ncontent_type = \"text/html\"\n"));
    log.register(vec![revised.into()]).await;
    log.register(mixer.batch(40)).await;
    erase(&mut log, 0, &[5, 77, 130]).await;
    let store = Arc::clone(&log.store);
    let source = StoreSource::new(&*store);
    let mut state = AuditState::default();
    loop {
        let kept = state.to_json().unwrap();
        let mut audit = Audit::begin(&source, AuditState::from_json(&kept).unwrap()).await.unwrap();
        if !audit.step().await.unwrap() {
            assert_eq!(audit.report(), audited(&*log.store).await);
            break;
        }
        state = audit.state().clone();
    }
    log.register(mixer.batch(10)).await;
    let mut audit = Audit::begin(&source, state).await.unwrap();
    while audit.step().await.unwrap() {}
    assert_eq!(audit.report(), audited(&*log.store).await, "and goes on when the log has grown");
}

#[tokio::test]
async fn a_state_of_another_log_a_longer_one_or_another_history_is_refused() {
    let (log, _) = mixed_log(Arc::new(Memory::new()), 2).await;
    let walked = |log: &Log| {
        let store = Arc::clone(&log.store);
        async move {
            let source = StoreSource::new(&*store);
            let mut audit = Audit::begin(&source, AuditState::default()).await.unwrap();
            while audit.step().await.unwrap() {}
            audit.state().clone()
        }
    };
    let state = walked(&log).await;
    let begin = |log: &Log, state: &AuditState| {
        let (store, state) = (Arc::clone(&log.store), state.clone());
        async move { Audit::begin(&StoreSource::new(&*store), state).await.map(|_| ()).unwrap_err() }
    };
    let (other, _) = mixed_log(Arc::new(Memory::new()), 2).await;
    let refused = begin(&other, &state).await;
    assert!(matches!(refused, AuditError::State(AuditStateError::AnotherLog { .. })), "{refused}");
    let shorter = Log::under(Arc::new(Memory::new()), log.in_force.policy()).await;
    let refused = begin(&shorter, &state).await;
    assert!(matches!(refused, AuditError::State(AuditStateError::Ahead { .. })), "{refused}");
    let mut forked = Log::under(Arc::new(Memory::new()), log.in_force.policy()).await;
    let notes = (0..log.size() - 1).map(|n| testkit::opaque("fork", &serde_json::json!(n)).into());
    forked.register(notes.collect()).await;
    let refused = begin(&forked, &state).await;
    assert!(matches!(refused, AuditError::State(AuditStateError::AnotherHistory { .. })), "{refused}");
}

#[tokio::test]
async fn what_was_never_admitted_is_named() {
    let (mut log, _) = mixed_log(Arc::new(Memory::new()), 1).await;
    let stranger = testkit::opaque_with(
        &testkit::es256(),
        "https://stranger.example",
        b"key",
        "smuggled",
        &serde_json::json!({}),
    );
    let (mut entry, _) = log.admit(&testkit::opaque("a", &serde_json::json!({})).into()).await.unwrap();
    entry.statement = stranger.bytes().clone();
    (entry.digest, entry.twin) = (stranger.digest(), stranger.twin());
    let leaf = log.size();
    log.smuggle(vec![entry]).await;
    let report = audited(&*log.store).await;
    let [finding] = &report.findings[..] else { panic!("{:#?}", report.findings) };
    assert_eq!((finding.rule, finding.leaf), (LogRule::Refused, Some(leaf)));
    assert!(finding.detail.starts_with("issuer-unknown"), "{finding}");
}

#[tokio::test]
async fn a_condition_that_comes_to_no_answer_is_counted_and_no_finding() {
    let numbers: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    let slow = format!(
        "\n[[type]]\ncontent_type = \"text/html\"\n[[type.rule]]\nname = \"slow\"\nthen = \"refuse\"\n\
         when = \"numbers := [{}]; some a in numbers; some b in numbers; some c in numbers; some d in numbers; \
         a + b + c + d < 0\"\n",
        numbers.join(",")
    );
    let policy = Policy::from_toml(&(testkit::policy_toml() + &slow)).unwrap();
    let mut log = Log::under(Arc::new(Memory::new()), &policy).await;
    let page = StatementBuilder::new("<p>")
        .content_type("text/html")
        .kid(KID)
        .iss(ISSUER)
        .sub("page")
        .sign(&testkit::es256())
        .unwrap();
    // The day that it was admitted, the condition had its answer in time.
    let (mut entry, _) = log.admit(&testkit::opaque("a", &serde_json::json!({})).into()).await.unwrap();
    entry.statement = page.bytes().clone();
    (entry.digest, entry.twin) = (page.digest(), page.twin());
    log.smuggle(vec![entry]).await;
    let report = audited(&*log.store).await;
    assert_eq!((report.findings, report.counts.undecided, report.counts.same), (vec![], 1, 1));
}

#[tokio::test]
async fn an_empty_log_has_nothing_to_decide() {
    let store = Memory::new();
    store.open(ORIGIN).await.unwrap();
    let report = audited(&store).await;
    assert!(report.is_clean());
    assert_eq!((report.decided(), report.counts.entries), (0, 0));
}
