//! What an honest log says.

use std::sync::Arc;

use audit::{Audit, Explains, Report, Rule, State, Stored};
use store::{LogStore, Memory};

use crate::log::Log;
use crate::mixed::{KINDS, Mixer};

/// Audits a log from its first leaf to its head.
pub async fn audited(store: &dyn LogStore) -> Report {
    let source = Stored::new(store);
    let mut audit = Audit::begin(&source, State::default()).await.unwrap();
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
    let _ = Rule::ALL;
}
