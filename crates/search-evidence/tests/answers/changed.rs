//! Changed answers: what somebody leaves out, adds or exchanges is refused.

use lookup_tree::LeafRange;
use merkle::LeafIndex;
use search_evidence::{AnswerOutcome, AnswerReader, SearchAnswer, starts_like_an_answer};
use testkit::NOW;
use verifier::Code;

use super::log::{
    ERASED, ERASURE, LATER, SIZE, TestLog, UNSERVED, found, issuer, question, subject, trust, verify,
};

/// The answer about the indexed leaves, with an erased and an unserved entry.
fn sound(log: &TestLog) -> SearchAnswer {
    log.answer(question("a", Some(SIZE)), &[1, 5, ERASURE])
}

#[track_caller]
fn assert_wrong(answer: &SearchAnswer, code: Code) {
    let verdict = verify(answer, &trust());
    assert_eq!((verdict.outcome, verdict.reason), (AnswerOutcome::Wrong, Some(code)), "{verdict:#?}");
}

fn without(answer: &SearchAnswer, leaf: u64) -> SearchAnswer {
    let mut answer = answer.clone();
    answer.evidence.entries.retain(|entry| entry.proof.index != leaf);
    answer
}

fn with(log: &TestLog, answer: &SearchAnswer, leaf: u64) -> SearchAnswer {
    let mut answer = answer.clone();
    answer.evidence.entries.push(log.entry(leaf));
    answer.evidence.entries.sort_by_key(|entry| entry.proof.index);
    answer
}

#[test]
fn an_entry_cannot_be_left_out() {
    let sound = sound(&TestLog::honest());
    for leaf in [1, 5, ERASURE] {
        assert_wrong(&without(&sound, leaf), Code::EntryMissing);
    }
    let head = without(&sound, SIZE);
    assert_wrong(&head, Code::EntryMissing);
    assert_wrong(&SearchAnswer { erased: vec![], ..sound.clone() }, Code::EntryMissing);
    let mut no_policy = sound;
    no_policy.evidence.policies.clear();
    assert_wrong(&no_policy, Code::PolicyMissing);
}

#[test]
fn an_entry_cannot_be_added() {
    let log = TestLog::honest();
    let sound = sound(&log);
    for leaf in [2, ERASED, LATER] {
        assert_wrong(&with(&log, &sound, leaf), Code::EntryUnneeded);
    }
    let unread = verify(&with(&log, &sound, UNSERVED), &trust());
    assert_eq!((unread.outcome, found(&unread)), (AnswerOutcome::CompleteBut, vec![1, 5]));
    let mut erased = sound.clone();
    erased.erased[0].leaf = LeafIndex::new(2);
    assert_wrong(&erased, Code::EntryMissing);
}

#[test]
fn an_erased_entry_is_the_one_that_the_statement_names() {
    let log = TestLog::honest();
    let mut other = sound(&log);
    other.erased[0].entry = log.statements[2].digest();
    assert_wrong(&other, Code::TlogProofMismatch);
    let mut elsewhere = sound(&log);
    elsewhere.erased[0].path = log.path(2);
    assert_wrong(&elsewhere, Code::TlogProofMismatch);
}

#[test]
fn pages_are_those_of_the_question_and_join() {
    let log = TestLog::honest();
    let sound = sound(&log);
    let terms = sound.question.terms.clone();
    let page = |start, end| log.page(&terms, LeafRange::new(start, end));
    let with_pages = |pages| SearchAnswer { pages, ..sound.clone() };
    for pages in [
        vec![page(0, 4)],
        vec![page(1, SIZE)],
        vec![page(0, 3), page(4, SIZE)],
        vec![page(4, SIZE), page(0, 4)],
        vec![page(0, 4), log.page(&[issuer()], LeafRange::new(4, SIZE))],
        vec![log.page(&[subject("b")], LeafRange::new(0, SIZE))],
        vec![log.page(&[issuer(), subject("b")], LeafRange::new(0, SIZE))],
    ] {
        assert_wrong(&with_pages(pages), Code::IndexProofInvalid);
    }
    assert_wrong(&with_pages(vec![]), Code::EntryMissing);
    let one = verify(&with_pages(vec![page(0, SIZE)]), &trust());
    assert_eq!((one.outcome, found(&one)), (AnswerOutcome::CompleteBut, vec![1, 5]));
    let only_subject =
        verify(&with_pages(vec![log.page(&[subject("a")], LeafRange::new(0, SIZE))]), &trust());
    assert_eq!(found(&only_subject), [1, 5], "each entry shows whether it has the other terms");
}

#[test]
fn a_wider_question_is_not_answered_by_a_narrow_proof() {
    let log = TestLog::honest();
    let mut wider = log.answer(question("a", Some(ERASED)), &[1]);
    wider.question.to = Some(LeafIndex::new(SIZE));
    assert_wrong(&wider, Code::IndexProofInvalid);
    wider.question.to = None;
    assert_wrong(&wider, Code::IndexProofInvalid);
}

#[test]
fn another_log_with_these_keys_gives_another_answer() {
    let liar = TestLog::with_index(|postings| postings.truncate(3));
    let mut mixed = sound(&TestLog::honest());
    mixed.pages = sound(&liar).pages;
    assert_wrong(&mixed, Code::EntryMissing);
}

#[test]
fn no_changed_byte_changes_what_is_believed() {
    let log = TestLog::honest();
    let answer = sound(&log);
    let (bytes, trust) = (answer.encode(), trust());
    let reader = AnswerReader { trust: &trust, witnesses: None, monitors: None, attestations: &[], now: NOW };
    let before = answer.verify(&reader);
    assert!(starts_like_an_answer(&bytes));
    // Some hundreds of the positions, all bits in turn.
    for (nth, at) in (0..bytes.len()).step_by(29).enumerate() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (nth % 8);
        let Ok(answer) = SearchAnswer::decode(&changed) else { continue };
        let after = answer.verify(&reader);
        if after.question != before.question {
            // An answer to another question, which may be right.
            continue;
        }
        let refused = matches!(after.outcome, AnswerOutcome::Wrong | AnswerOutcome::NotProven);
        let same = (&after.found, &after.gaps) == (&before.found, &before.gaps);
        assert!(refused || same, "byte {at}: {after:#?}");
    }
    for end in [0, 1, 20, bytes.len() - 1] {
        assert!(SearchAnswer::decode(&bytes[..end]).is_err());
    }
}
