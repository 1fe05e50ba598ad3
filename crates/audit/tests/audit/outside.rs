//! An audit from the outside, by somebody who has no table of claims, and who believes no index of entries.

use std::sync::Arc;

use audit::{
    Audit, AuditHead, AuditReport, AuditSource, AuditState, Explains, HistoryHead, LeafRow, LogRule,
    LookUpAnswer, SourceError, StoreSource,
};
use merkle::{EntryDigest, LeafHash, LeafIndex};
use registration::clock_correction::ClockCorrection;
use store::{Collateral, Found, GuardKey, LogStore, Memory, NewEntry};

use crate::clean::{audited, erase, mixed_log};
use crate::log::Log;

/// What a service shows: no history of heads, the time with each entry, and perhaps a wrong receipt for one leaf, or a
/// wrong hash of one in the first tile.
struct Outside<'a>(StoreSource<'a>, Vec<store::CommittedHead>, Option<LeafIndex>, Option<usize>);

impl<'a> Outside<'a> {
    async fn of(store: &'a dyn LogStore) -> Self {
        Self(StoreSource::new(store), store.heads(0, 10_000).await.unwrap(), None, None)
    }
}

#[async_trait::async_trait]
impl AuditSource for Outside<'_> {
    async fn head(&self) -> Result<AuditHead, SourceError> {
        Ok(AuditHead { batch: None, policy: None, ..self.0.head().await? })
    }

    async fn rows(&self, from: LeafIndex, count: usize) -> Result<Vec<LeafRow>, SourceError> {
        let mut rows = self.0.rows(from, count).await?;
        for row in &mut rows {
            if let LeafRow::Kept(evidence) = row {
                let head = self.1.iter().find(|head| head.size.holds(evidence.index));
                evidence.at = head.map(|head| head.at);
                let is_wrong = self.2 == Some(evidence.index);
                evidence.refused_receipt = is_wrong.then(|| "it signs another root".to_owned());
            }
        }
        Ok(rows)
    }

    async fn collateral(&self, leaf: LeafIndex) -> Result<Vec<Collateral>, SourceError> {
        self.0.collateral(leaf).await
    }

    async fn heads(&self, _: u64, _: usize) -> Result<Vec<HistoryHead>, SourceError> {
        Ok(Vec::new())
    }

    async fn leaves(&self, tile: u64) -> Result<Vec<LeafHash>, SourceError> {
        let mut leaves = self.0.leaves(tile).await?;
        if let Some(wrong) = self.3.filter(|_| tile == 0) {
            leaves[wrong] = LeafHash::from_bytes([0; 32]);
        }
        Ok(leaves)
    }

    fn keeps_indexes(&self) -> bool {
        false
    }

    async fn find(&self, _: &[EntryDigest]) -> Result<Vec<LookUpAnswer<Found>>, SourceError> {
        panic!("nobody outside believes an answer to this")
    }

    async fn guards(&self, _: &[GuardKey]) -> Result<Vec<LookUpAnswer<LeafIndex>>, SourceError> {
        panic!("nobody outside can ask this")
    }
}

async fn from_outside(store: &dyn LogStore) -> AuditReport {
    let source = Outside::of(store).await;
    let mut state = AuditState::default();
    loop {
        // Put down and taken up again at every page: the claims go along.
        let kept = AuditState::from_json(&state.to_json().unwrap()).unwrap();
        let mut audit = Audit::begin(&source, kept).await.unwrap();
        if !audit.step().await.unwrap() {
            audit.settle().await.unwrap();
            return audit.report();
        }
        state = audit.state().clone();
    }
}

#[tokio::test]
async fn somebody_outside_comes_to_the_same_decisions() {
    let (mut log, mut mixer) = mixed_log(Arc::new(Memory::new()), 4).await;
    let revised = log.revised(&(mixer.toml() + "\n[[type]]\ncontent_type = \"text/html\"\n"));
    log.register(vec![revised.into()]).await;
    log.register(mixer.batch(30)).await;
    let (inside, outside) = (audited(&*log.store).await, from_outside(&*log.store).await);
    assert_eq!(outside.findings, []);
    assert_eq!((outside.counts.same, outside.counts.dropped), (inside.counts.same, inside.counts.dropped));
    assert_eq!((outside.size, outside.root, outside.counts.heads), (inside.size, inside.root, 0));
}

#[tokio::test]
async fn a_receipt_that_does_not_verify_is_named_with_its_entry_which_is_decided_all_the_same() {
    let (log, _) = mixed_log(Arc::new(Memory::new()), 1).await;
    let clean = from_outside(&*log.store).await;
    let mut source = Outside::of(&*log.store).await;
    source.2 = Some(LeafIndex::new(1));
    let mut audit = Audit::begin(&source, AuditState::default()).await.unwrap();
    while audit.step().await.unwrap() {}
    let report = audit.report();
    let [finding] = &report.findings[..] else { panic!("{:#?}", report.findings) };
    assert_eq!((finding.rule, finding.leaf), (LogRule::Receipt, Some(1)));
    assert!(finding.entry.is_some() && finding.detail == "it signs another root", "{finding}");
    assert_eq!((report.counts, report.is_clean()), (clean.counts, false));
}

#[tokio::test]
async fn a_claim_that_two_entries_make_is_named_without_any_table() {
    let (mut log, _) = mixed_log(Arc::new(Memory::new()), 1).await;
    let twice = testkit::aer(1_000_000);
    let first = log.register(vec![twice.into()]).await;
    let mut other = testkit::aer_json(1_000_000);
    other["session"]["session_id"] = "sess:00000000000000ff".into();
    let other = testkit::aer_statement(other).sign(&testkit::gateway()).unwrap();
    let (mut entry, _) = log.admit(&other.into()).await.unwrap();
    entry.guards.clear(); // who can write the database need not keep its table
    let leaf = log.size();
    log.smuggle(vec![entry]).await;
    let report = from_outside(&*log.store).await;
    let [finding] = &report.findings[..] else { panic!("{:#?}", report.findings) };
    assert_eq!((finding.rule, finding.leaf), (LogRule::GuardMissing, Some(leaf)));
    assert!(finding.detail.contains(&format!("leaf {first} has made")), "{finding}");
}

/// A chain whose first receipt is erased: from the outside nobody can know any more that it was one.
#[tokio::test]
async fn what_only_erased_entries_could_answer_is_no_accusation() {
    let mut log = Log::under(Arc::new(Memory::new()), &testkit::policy()).await;
    let first = testkit::receipt(1).sign(&testkit::verifier()).unwrap();
    let digest = first.digest();
    let leaf = log.register(vec![first.into()]).await;
    let second = testkit::receipt(2).after(digest, 1).sign(&testkit::verifier()).unwrap();
    log.register(vec![second.into()]).await;
    assert_eq!(from_outside(&*log.store).await.counts.undecided, 0);
    erase(&mut log, 0, &[leaf]).await;
    let (inside, outside) = (audited(&*log.store).await, from_outside(&*log.store).await);
    assert_eq!((inside.findings, inside.counts.undecided), (vec![], 0), "the database still knows");
    assert_eq!((outside.findings, outside.counts.undecided, outside.counts.unknown), (vec![], 0, 1));
    let (by, why) = outside.explained.iter().find(|(_, it)| it.kind == Explains::Unread).unwrap();
    assert_eq!((by.get(), why.entry.as_str(), why.entries), (leaf, &*digest.to_string(), 1));
}

/// Under cover of an erased entry nothing else passes: not what is refused either way, not a row that lies.
#[tokio::test]
async fn what_an_erased_entry_cannot_bear_out_is_named() {
    let mut log = Log::under(Arc::new(Memory::new()), &testkit::policy()).await;
    let first = testkit::receipt(1).sign(&testkit::verifier()).unwrap();
    let digest = first.digest();
    let leaf = log.register(vec![first.into()]).await;
    let note = testkit::opaque("note", &serde_json::json!(1));
    log.register(vec![note.clone().into()]).await;
    let second = testkit::receipt(2).after(digest, 1).sign(&testkit::verifier()).unwrap();
    let (honest, _) = log.admit(&second.into()).await.unwrap();
    erase(&mut log, 0, &[leaf]).await;
    let forged = |previous, entry: &NewEntry| {
        let statement = testkit::receipt(3).after(previous, 1).sign(&testkit::verifier()).unwrap();
        let (digest, twin) = (statement.digest(), statement.twin());
        NewEntry { digest, twin, statement: statement.bytes().clone(), guards: Vec::new(), ..entry.clone() }
    };
    // It follows an entry that everybody can read, and that is not a receipt.
    let astray = forged(note.digest(), &honest);
    let lying = NewEntry { rule: "application/json".into(), guards: Vec::new(), ..honest.clone() };
    let at = log.size();
    log.smuggle(vec![astray, lying]).await;
    let report = from_outside(&*log.store).await;
    let named: Vec<_> = report.findings.iter().map(|it| (it.rule, it.leaf)).collect();
    assert_eq!(
        named,
        [(LogRule::Refused, Some(at)), (LogRule::RuleDiffers, Some(at + 1))],
        "{:#?}",
        report.findings
    );
    assert_eq!((report.counts.unknown, report.counts.undecided), (0, 0));
}

#[tokio::test]
async fn times_are_the_services_word_and_must_not_run_back() {
    let (log, _) = mixed_log(Arc::new(Memory::new()), 3).await;
    let mut source = Outside::of(&*log.store).await;
    let report = from_outside(&*log.store).await;
    assert_eq!((report.counts.told_times, report.counts.untold_times), (log.size(), 0));
    source.1[3].at -= 2;
    let first = source.1[2].size.get();
    let mut audit = Audit::begin(&source, AuditState::default()).await.unwrap();
    while audit.step().await.unwrap() {}
    let report = audit.report();
    assert!(
        report.findings.iter().any(|it| (it.rule, it.leaf) == (LogRule::History, Some(first))),
        "{report:#?}"
    );
    source.1.clear();
    let mut audit = Audit::begin(&source, AuditState::default()).await.unwrap();
    while audit.step().await.unwrap() {}
    assert_eq!(audit.report().counts.untold_times, log.size());
    assert_eq!(audited(&*log.store).await.counts.told_times, 0, "the database has what was signed");
}

/// A log whose clock was a year ahead for one batch, and then corrected by what `correct` makes of the right correction.
async fn corrected(correct: impl FnOnce(&mut ClockCorrection)) -> Log {
    let (mut log, mut mixer) = mixed_log(Arc::new(Memory::new()), 2).await;
    log.ahead = 365 * 86_400;
    log.register(mixer.batch(3)).await;
    let mut correction = log.corrected();
    correct(&mut correction);
    let statement = log.signed(&correction);
    log.ahead = 0;
    log.register(vec![statement.into()]).await;
    log.register(mixer.batch(3)).await;
    log
}

#[tokio::test]
async fn r36_a_clock_correction_explains_that_the_time_runs_back_once() {
    let log = corrected(|_| {}).await;
    let (inside, outside) = (audited(&*log.store).await, from_outside(&*log.store).await);
    assert_eq!((inside.findings, outside.findings), (Vec::new(), Vec::new()));
    assert_eq!(outside.counts.told_times, log.size());
}

#[tokio::test]
async fn r36_a_clock_correction_of_another_head_or_time_explains_nothing() {
    let wrong: [fn(&mut ClockCorrection); 3] = [
        |it| it.size = it.size.last_leaf().map(|leaf| merkle::TreeSize::new(leaf.get())).unwrap(),
        |it| it.committed_at += 1,
        |it| it.time += 86_400,
    ];
    for (n, wrong) in wrong.into_iter().enumerate() {
        let log = corrected(wrong).await;
        let ran_back = |report: &AuditReport| report.findings.iter().any(|it| it.rule == LogRule::History);
        assert!(ran_back(&audited(&*log.store).await), "from inside: {n}");
        assert!(ran_back(&from_outside(&*log.store).await), "from outside: {n}");
    }
}

#[tokio::test]
async fn leaves_that_do_not_give_the_root_of_the_head_do_not_agree_with_it() {
    let (log, _) = mixed_log(Arc::new(Memory::new()), 4).await;
    let mut source = Outside::of(&*log.store).await;
    for wrong in [None, Some(1)] {
        source.3 = wrong;
        let mut audit = Audit::begin(&source, AuditState::default()).await.unwrap();
        while audit.step().await.unwrap() {}
        assert_eq!(audit.agrees_with_heads(), wrong.is_none());
        let (size, root) = (audit.report().size, audit.report().root);
        assert_eq!((audit.tree().size(), audit.tree().root() == root), (size, wrong.is_none()));
    }
}
