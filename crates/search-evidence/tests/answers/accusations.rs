//! Files that accuse a log of a wrong index.

use lookup_tree::{LeafRange, Posting};
use merkle::{CompactRange, LeafIndex};
use search_evidence::{AccusationFault, AnswerOutcome, check_accusation};
use testkit::NOW;
use verifier::index::{
    AccusationRefused, IndexAccusation, IndexAccusationFile, IndexFormFault, PostingEvidence, SearchTerm,
};
use verifier::{Code, TrustStore, VerificationOutcome};

use super::log::{ERASED, SIZE, TestLog, UNSERVED, question, subject, trust, verify};

fn posting(name: &str, leaf: u64) -> Posting {
    Posting { key: subject(name).key(), leaf: LeafIndex::new(leaf) }
}

/// What a log's index says about a term of the entry at a leaf.
fn evidence(log: &TestLog, term: SearchTerm, leaf: u64) -> PostingEvidence {
    let indexed = &log.statements[..SIZE as usize];
    let leaves: Vec<_> = indexed.iter().map(|statement| statement.digest().leaf_hash()).collect();
    PostingEvidence {
        head: log.head_evidence(),
        leaf: LeafIndex::new(leaf),
        statement: indexed[leaf as usize].bytes().to_vec(),
        payload: None,
        path: CompactRange::empty().grow(&leaves).path(LeafIndex::new(leaf)).unwrap(),
        proof: log.run_proof(std::slice::from_ref(&term), LeafRange::new(leaf, leaf + 1)),
        term,
    }
}

fn file(log: &TestLog, accusation: IndexAccusation) -> IndexAccusationFile {
    let file = IndexAccusationFile { policy: log.policy_evidence(), accusation };
    IndexAccusationFile::decode(&file.encode()).unwrap()
}

fn check(log: &TestLog, accusation: IndexAccusation) -> Result<(), AccusationFault> {
    check_accusation(&file(log, accusation), &trust(), NOW)
}

#[test]
fn an_index_that_omits_an_entry_is_accused_by_a_file() {
    let liar = TestLog::with_index(|postings| postings.retain(|found| *found != posting("a", 5)));
    assert_eq!(check(&liar, IndexAccusation::Omits(evidence(&liar, subject("a"), 5))), Ok(()));
    let honest = TestLog::honest();
    let agrees = Err(AccusationFault::Refused(AccusationRefused::Agrees));
    assert_eq!(check(&honest, IndexAccusation::Omits(evidence(&honest, subject("a"), 5))), agrees);
    assert_eq!(check(&honest, IndexAccusation::Adds(evidence(&honest, subject("a"), 5))), agrees);
}

#[test]
fn an_index_that_adds_an_entry_makes_the_answer_and_an_accusation_say_so() {
    let liar = TestLog::with_index(|postings| postings.push(posting("a", 2)));
    assert_eq!(check(&liar, IndexAccusation::Adds(evidence(&liar, subject("a"), 2))), Ok(()));
    let verdict = verify(&liar.answer(question("a", Some(ERASED)), &[1, 2]), &trust());
    assert_eq!((verdict.outcome, verdict.reason), (AnswerOutcome::Wrong, Some(Code::IndexContradicted)));
}

#[test]
fn two_heads_that_are_one_show_nothing() {
    let log = TestLog::honest();
    let fault = IndexFormFault::TwoHeads(log.head_evidence(), log.head_evidence());
    let checked = check(&log, IndexAccusation::Form(fault));
    assert!(matches!(checked, Err(AccusationFault::Refused(AccusationRefused::RuleKept(_)))), "{checked:?}");
}

#[test]
fn an_entry_whose_payload_is_not_in_the_file_accuses_nobody() {
    let liar = TestLog::with_index(|postings| postings.push(posting("a", UNSERVED)));
    let checked = check(&liar, IndexAccusation::Adds(evidence(&liar, subject("a"), UNSERVED)));
    assert_eq!(checked, Err(AccusationFault::Refused(AccusationRefused::Unreadable)));
}

#[test]
fn the_policy_of_an_accusation_is_one_that_the_trusted_log_registered() {
    let liar = TestLog::with_index(|postings| postings.retain(|found| *found != posting("a", 5)));
    let sound = file(&liar, IndexAccusation::Omits(evidence(&liar, subject("a"), 5)));
    let outcome = |file: &IndexAccusationFile, trust: &TrustStore| match check_accusation(file, trust, NOW) {
        Err(AccusationFault::Policy { outcome, .. }) => Some(outcome),
        _ => None,
    };
    assert_eq!(outcome(&sound, &TrustStore::default()), Some(VerificationOutcome::NotVerified));
    let mut other = sound.clone();
    other.policy.receipt = liar.receipt(1);
    assert_eq!(outcome(&other, &trust()), Some(VerificationOutcome::Failed));
    let mut no_policy = sound;
    no_policy.policy.statement = liar.statements[1].bytes().to_vec();
    no_policy.policy.receipt = liar.receipt(1);
    let checked = check_accusation(&no_policy, &trust(), NOW);
    assert!(matches!(checked, Err(AccusationFault::NoIndex(_))), "{checked:?}");
}
