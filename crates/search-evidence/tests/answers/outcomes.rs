//! Honest answers: complete, complete but for some entries, or not proven to this reader.

use lookup_tree::BlindCode;
use search_evidence::{AnswerGap, AnswerOutcome, AnswerVerdict, SearchedLeaves};
use testkit::NOW;
use verifier::{Code, TrustStore};

use super::log::{ERASED, ERASURE, HEAD, LATER, SIZE, TestLog, UNSERVED, found, question, trust, verify};

fn erased(log: &TestLog) -> AnswerGap {
    let entry = log.statements[ERASED as usize].digest().to_string();
    AnswerGap::Erased { leaf: ERASED, entry, by: ERASURE }
}

fn unserved() -> AnswerGap {
    AnswerGap::Unread { leaf: UNSERVED, why: BlindCode::Unreadable }
}

#[track_caller]
fn assert_outcome(verdict: &AnswerVerdict, outcome: AnswerOutcome, reason: Option<Code>) {
    assert_eq!((verdict.outcome, verdict.reason), (outcome, reason), "{verdict:#?}");
}

#[test]
fn an_answer_about_readable_leaves_is_complete() {
    let log = TestLog::honest();
    let verdict = verify(&log.answer(question("a", Some(ERASED)), &[1]), &trust());
    assert_outcome(&verdict, AnswerOutcome::Complete, None);
    assert_eq!((found(&verdict), &verdict.gaps[..]), (vec![1], &[][..]));
    let at = Some(NOW as i64 - 70);
    assert_eq!(verdict.searched, Some(SearchedLeaves { from: 0, to: ERASED, at, head: HEAD }));
    assert_eq!(verdict.found[0].sub.as_deref(), Some("a"));
}

#[test]
fn that_no_entry_has_the_terms_is_proven_too() {
    let log = TestLog::honest();
    let verdict = verify(&log.answer(question("nobody", Some(ERASED)), &[]), &trust());
    assert_outcome(&verdict, AnswerOutcome::Complete, None);
    assert_eq!(found(&verdict), [0; 0]);
}

#[test]
fn an_answer_names_the_entries_that_it_cannot_speak_for() {
    let log = TestLog::honest();
    let verdict = verify(&log.answer(question("a", Some(SIZE)), &[1, 5, ERASURE]), &trust());
    assert_outcome(&verdict, AnswerOutcome::CompleteBut, None);
    assert_eq!(found(&verdict), [1, 5]);
    assert_eq!(verdict.gaps, [erased(&log), unserved()]);
}

#[test]
fn entries_that_are_newer_than_the_index_are_read_or_named() {
    let log = TestLog::honest();
    let without = verify(&log.answer(question("a", None), &[1, 5, ERASURE]), &trust());
    assert_outcome(&without, AnswerOutcome::CompleteBut, None);
    let newer = AnswerGap::NotSearched { from: LATER, to: LATER + 1 };
    assert_eq!(without.gaps, [erased(&log), unserved(), newer]);

    let with = verify(&log.answer(question("a", None), &[1, 5, ERASURE, LATER]), &trust());
    assert_eq!((found(&with), with.gaps.len()), (vec![1, 5, LATER], 2));
    let others = verify(&log.answer(question("b", None), &[2, ERASURE, LATER]), &trust());
    assert_eq!((found(&others), others.gaps.len()), (vec![2], 2), "the later entry is about another subject");
}

#[test]
fn who_does_not_trust_the_log_has_no_proof() {
    let log = TestLog::honest();
    let answer = log.answer(question("a", Some(ERASED)), &[1]);
    let verdict = verify(&answer, &TrustStore::default());
    assert_eq!(verdict.outcome, AnswerOutcome::NotProven, "{verdict:#?}");
    assert_eq!(verdict.searched, None);
    let mut no_checkpoint_key = trust();
    no_checkpoint_key.logs[0].checkpoint_keys.clear();
    assert_outcome(
        &verify(&answer, &no_checkpoint_key),
        AnswerOutcome::NotProven,
        Some(Code::UnknownCheckpointKey),
    );
}
