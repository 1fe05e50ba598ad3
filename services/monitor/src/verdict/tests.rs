//! Verification of accusations: misbehaving logs, and false accusations.

use std::convert::Infallible;

use ed25519_dalek::SigningKey;
use merkle::{CompactRange, Hash, LeafHash, RootHash, TreeSize, hash_children, hash_leaf, proof};
use scitt::{Algorithm, SignedStatement};
use tlog::checkpoint::Checkpoint;
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NoteSigner};

use super::*;
use crate::alarm::{Alarm, AlarmKind, AlarmSubject};
use crate::evidence::{EntrySeen, Evidence, Sighting, TwoRootPath};

const ORIGIN: &str = "log.example";

/// A test log, of which a leaf can be replaced to simulate a fork.
#[derive(Clone)]
struct Log {
    leaves: Vec<LeafHash>,
}

impl Log {
    fn of(size: u8) -> Self {
        Self { leaves: (0..size).map(|leaf| hash_leaf(&[leaf])).collect() }
    }

    fn forked_at(mut self, leaf: usize) -> Self {
        self.leaves[leaf] = hash_leaf(b"another");
        self
    }

    fn root(&self, size: usize) -> RootHash {
        let mut range = CompactRange::empty();
        self.leaves[..size].iter().for_each(|leaf| range.append(*leaf));
        range.root()
    }

    fn note(&self, size: usize) -> String {
        self.note_by(size, &key(1))
    }

    fn note_by(&self, size: usize, key: &LocalKey) -> String {
        let origin = ORIGIN.parse().unwrap();
        let checkpoint = Checkpoint::new(origin, TreeSize::new(size as u64), self.root(size)).unwrap();
        checkpoint.sign(key).unwrap().to_string()
    }

    fn node(&self, level: u8, index: u64) -> Hash {
        match level {
            0 => self.leaves[usize::try_from(index).unwrap()].into(),
            _ => hash_children(self.node(level - 1, 2 * index), self.node(level - 1, 2 * index + 1)),
        }
    }

    fn proof(&self, older: usize, newer: usize) -> Vec<Hash> {
        let plan = proof::consistency(TreeSize::new(older as u64), TreeSize::new(newer as u64)).unwrap();
        let Ok(path) = plan.fold(|node| Ok::<_, Infallible>(self.node(node.level, node.index)));
        path
    }

    /// The path as the monitor writes it: always with the first node.
    fn path(&self, older: usize, newer: usize) -> TwoRootPath {
        let mut hashes = self.proof(older, newer);
        if older.is_power_of_two() {
            hashes.insert(0, self.root(older).into());
        }
        let mut hashes = hashes.iter().map(ToString::to_string);
        TwoRootPath { start: hashes.next().unwrap(), siblings: hashes.collect() }
    }
}

fn key(seed: u8) -> LocalKey {
    LocalKey::new(ORIGIN.parse().unwrap(), SigningKey::from_bytes(&[seed; 32])).unwrap()
}

fn vkey() -> VerifierKey {
    key(1).key().clone()
}

fn diff(notes: [&str; 2], join: Join<'_>) -> Verdict {
    compare(notes.map(str::as_bytes), &[vkey()], join).verdict
}

fn seen(note: &str) -> Sighting {
    Sighting { note: note.to_owned(), from: "https://log.example/checkpoint".into(), at: 1_790_000_000 }
}

fn alarm(kind: AlarmKind, evidence: Evidence) -> Alarm {
    Alarm::new(kind, "ours", AlarmSubject::Log, "words", 1_790_000_000).shown_by(evidence)
}

fn contradiction(older: &str, newer: &str, path: Option<TwoRootPath>) -> Alarm {
    let evidence = Evidence::Contradiction {
        vkey: vkey().to_string(),
        origin: None,
        older: seen(older),
        newer: seen(newer),
        path,
    };
    alarm(AlarmKind::Fork, evidence)
}

#[test]
fn one_tree_is_the_same_as_itself() {
    let log = Log::of(9);
    assert_eq!(diff([&log.note(9), &log.note(9)], Join::Nothing), Verdict::Same);
}

#[test]
fn two_roots_of_one_size_are_a_contradiction() {
    let (log, other) = (Log::of(9), Log::of(9).forked_at(8));
    assert_eq!(diff([&log.note(9), &other.note(9)], Join::Nothing), Verdict::Contradiction);
}

#[test]
fn two_sizes_say_nothing_without_a_proof_and_are_consistent_with_one_in_any_order() {
    let log = Log::of(40);
    for (older, newer) in [(1, 2), (3, 7), (4, 40), (13, 40), (32, 33)] {
        let notes = [log.note(older), log.note(newer)];
        let [first, second] = [notes[0].as_str(), notes[1].as_str()];
        assert_eq!(diff([first, second], Join::Nothing), Verdict::Unknown);
        let path = log.proof(older, newer);
        assert_eq!(diff([first, second], Join::Proof(&path)), Verdict::Consistent, "{older} to {newer}");
        assert_eq!(diff([second, first], Join::Proof(&path)), Verdict::Consistent, "{older} to {newer}");
    }
    assert_eq!(diff([&log.note(0), &log.note(40)], Join::Nothing), Verdict::Consistent);
}

#[test]
fn a_proof_that_does_not_fit_shows_nothing_by_itself() {
    let log = Log::of(40);
    let notes = [&*log.note(13), &*log.note(40)];
    for path in [Vec::new(), log.proof(12, 40), vec![Hash::from_bytes([7; 32]); log.proof(13, 40).len()]] {
        assert_eq!(diff(notes, Join::Proof(&path)), Verdict::Wrong, "{path:?}");
    }
}

#[test]
fn a_fork_before_the_older_size_is_shown_by_the_newer_trees_own_hashes_for_every_size() {
    let newer = 40;
    let (log, other) = (Log::of(40), Log::of(40));
    for older in 1..newer {
        let other = other.clone().forked_at(older - 1);
        let alarm = contradiction(&log.note(older), &other.note(newer), Some(other.path(older, newer)));
        let finding = judge(&alarm, &[vkey()], None);
        assert_eq!(finding.verdict, Verdict::Contradiction, "{older}: {finding:?}");
        assert_eq!(finding.heads.len(), 2);
        assert!(finding.heads.iter().all(|head| head.seen.is_some()), "{finding:?}");
    }
}

#[test]
fn an_honest_log_cannot_be_accused_of_a_fork() {
    let log = Log::of(40);
    for older in 1..40 {
        let (first, second) = (log.note(older), log.note(40));
        let honest = judge(&contradiction(&first, &second, Some(log.path(older, 40))), &[vkey()], None);
        assert_eq!(honest.verdict, Verdict::Wrong, "{honest:?}");
        // Hashes of a tree that the log never signed lead to a different newer root.
        let invented = Log::of(40).forked_at(older - 1).path(older, 40);
        let invented = judge(&contradiction(&first, &second, Some(invented)), &[vkey()], None);
        assert_eq!(invented.verdict, Verdict::Wrong, "{invented:?}");
        assert_eq!(judge(&contradiction(&first, &second, None), &[vkey()], None).verdict, Verdict::Unknown);
    }
    assert_eq!(
        judge(&contradiction(&log.note(9), &log.note(9), None), &[vkey()], None).verdict,
        Verdict::Wrong
    );
}

#[test]
fn a_note_that_another_key_signed_accuses_nobody() {
    let (log, other) = (Log::of(9), Log::of(9).forked_at(8));
    let forged = other.note_by(9, &key(2));
    assert_eq!(diff([&log.note(9), &forged], Join::Nothing), Verdict::Wrong);
    // With the accuser's own key in the file and without the log's: the finding names the key.
    let evidence = Evidence::Contradiction {
        vkey: key(2).key().to_string(),
        origin: None,
        older: seen(&log.note_by(9, &key(2))),
        newer: seen(&forged),
        path: None,
    };
    let alarm = alarm(AlarmKind::Fork, evidence);
    let finding = judge(&alarm, &[], None);
    assert_eq!(finding.verdict, Verdict::Unknown);
    assert!(finding.words.contains("unknown signer") && finding.words.contains("--key"), "{finding:?}");
    let said = finding.steps.iter().find(|step| step.name == "log key").unwrap();
    assert_eq!(said.outcome, Outcome::NotChecked);
    assert_eq!(judge(&alarm, &[vkey()], None).verdict, Verdict::Wrong);
}

#[test]
fn of_several_keys_one_and_the_same_must_have_signed_both_and_be_the_logs_own() {
    let (log, other) = (Log::of(9), Log::of(9).forked_at(8));
    let notes = [log.note(9), other.note_by(9, &key(2))];
    let verdict = |notes: &[String; 2], keys: &[VerifierKey]| {
        compare([notes[0].as_bytes(), notes[1].as_bytes()], keys, Join::Nothing).verdict
    };
    assert_eq!(verdict(&notes, &[vkey(), key(2).key().clone()]), Verdict::Unknown);
    // A log of another name signs contradictory checkpoints of this one.
    let stranger = LocalKey::new("log.elsewhere".parse().unwrap(), SigningKey::from_bytes(&[3; 32])).unwrap();
    let framed = [(&log, 9), (&other, 9)].map(|(log, size)| {
        let note = log.note(size);
        let text = tlog::note::Note::parse(note.as_bytes()).unwrap().text().to_owned();
        tlog::note::Note::sign(&text, &[&stranger]).unwrap().to_string()
    });
    assert_eq!(verdict(&framed, &[stranger.key().clone()]), Verdict::Unknown);
    let both = [log.note(9), other.note(9)];
    assert_eq!(verdict(&both, &[stranger.key().clone(), vkey()]), Verdict::Contradiction);
}

#[test]
fn without_a_key_nothing_follows_however_they_compare() {
    let (log, other) = (Log::of(9), Log::of(9).forked_at(8));
    let (first, second, third) = (log.note(9), other.note(9), log.note(5));
    for (notes, join) in [
        ([&first, &first], Join::Nothing),
        ([&first, &second], Join::Nothing),
        ([&first, &third], Join::Proof(&log.proof(5, 9))),
    ] {
        let finding = compare(notes.map(|note| note.as_bytes()), &[], join);
        assert_eq!(finding.verdict, Verdict::Unknown, "{finding:?}");
        assert!(finding.words.contains("not checked"), "{finding:?}");
    }
}

#[test]
fn a_key_of_another_name_accuses_the_log_of_which_the_verifier_says_that_it_is() {
    let signer = LocalKey::new("key.example".parse().unwrap(), SigningKey::from_bytes(&[4; 32])).unwrap();
    let (log, other) = (Log::of(9), Log::of(9).forked_at(8));
    let evidence = Evidence::Contradiction {
        vkey: signer.key().to_string(),
        origin: Some(ORIGIN.into()),
        older: seen(&log.note_by(9, &signer)),
        newer: seen(&other.note_by(9, &signer)),
        path: None,
    };
    let alarm = alarm(AlarmKind::Fork, evidence);
    let own = [signer.key().clone()];
    let of = |origin| judge(&alarm, CheckpointKeys { keys: &own, origin }, None);
    assert_eq!(of(Some(ORIGIN)).verdict, Verdict::Contradiction);
    assert_eq!(of(Some("log.elsewhere")).verdict, Verdict::Unknown);
    // What the evidence says of the key is the accuser's word.
    let unsaid = of(None);
    assert_eq!(unsaid.verdict, Verdict::Unknown);
    assert!(unsaid.steps.iter().any(|step| step.words.contains("--origin")), "{unsaid:?}");
    let keyless = judge(&alarm, &[], None);
    assert_eq!(keyless.verdict, Verdict::Unknown);
    assert!(keyless.words.contains("--key"), "{keyless:?}");
}

#[test]
fn checkpoints_of_two_logs_are_not_compared() {
    let note = Log::of(3).note(3);
    let other = note.replace(ORIGIN, "log.elsewhere");
    let finding = compare([note.as_bytes(), other.as_bytes()], &[], Join::Nothing);
    assert_eq!(finding.verdict, Verdict::Unknown);
    assert!(finding.words.contains("two logs"));
    assert_eq!(compare([note.as_bytes(), b"nothing"], &[], Join::Nothing).verdict, Verdict::Wrong);
}

#[test]
fn a_rollback_is_said_to_rest_on_the_monitors_word() {
    let log = Log::of(9);
    let rollback = |larger: &str, smaller: &str| {
        let (larger, smaller) = (seen(larger), seen(smaller));
        alarm(
            AlarmKind::Rollback,
            Evidence::Rollback { vkey: vkey().to_string(), origin: None, larger, smaller },
        )
    };
    let finding = judge(&rollback(&log.note(9), &log.note(5)), &[vkey()], None);
    assert_eq!(finding.verdict, Verdict::OnWord, "{finding:?}");
    assert!(finding.steps.iter().any(|step| step.name == "order" && step.outcome == Outcome::NotChecked));
    assert_eq!(judge(&rollback(&log.note(9), &log.note(9)), &[vkey()], None).verdict, Verdict::Wrong);
    let emptied = judge(&rollback(&log.note(9), &log.note(0)), &[vkey()], None);
    assert_eq!(emptied.verdict, Verdict::OnWord, "{emptied:?}");
    let forged = log.note_by(5, &key(2));
    assert_eq!(judge(&rollback(&log.note(9), &forged), &[vkey()], None).verdict, Verdict::Wrong);
}

#[test]
fn what_is_said_of_one_note_must_be_so() {
    let log = Log::of(9);
    let about = |kind, note: &str| {
        let evidence = Evidence::Checkpoint { vkey: vkey().to_string(), origin: None, seen: seen(note) };
        judge(&alarm(kind, evidence), &[vkey()], None).verdict
    };
    let (good, foreign) = (log.note(9), log.note_by(9, &key(2)));
    let broken = good.replace("\n9\n", "\n8\n");
    assert_eq!(about(AlarmKind::Stale, &good), Verdict::OnWord);
    assert_eq!(about(AlarmKind::Stale, &foreign), Verdict::Wrong);
    assert_eq!(about(AlarmKind::UnknownKey, &foreign), Verdict::OnWord);
    assert_eq!(about(AlarmKind::UnknownKey, &good), Verdict::Wrong);
    assert_eq!(about(AlarmKind::BadSignature, &broken), Verdict::OnWord);
    assert_eq!(about(AlarmKind::BadSignature, &good), Verdict::Wrong);
    assert_eq!(about(AlarmKind::OtherLog, &good), Verdict::Wrong);
}

#[test]
fn bytes_that_make_another_tree_are_told_from_those_that_make_the_signed_one() {
    let (log, other) = (Log::of(9), Log::of(9).forked_at(3));
    let served = |tile: &Log| {
        let bytes: Vec<u8> = tile.leaves.iter().flat_map(|leaf| *leaf.as_bytes()).collect();
        let evidence = Evidence::Served {
            vkey: vkey().to_string(),
            checkpoint: seen(&log.note(9)),
            path: "tile/0/000.p/9".into(),
            bytes: data_encoding::BASE64.encode(&bytes),
        };
        judge(&alarm(AlarmKind::Inconsistent, evidence), &[vkey()], None)
    };
    let finding = served(&other);
    assert_eq!(finding.verdict, Verdict::OnWord);
    assert!(finding.steps.iter().any(|step| step.words.contains("not signed")), "{finding:?}");
    assert_eq!(served(&log).verdict, Verdict::Wrong);
}

#[test]
fn a_statement_that_is_not_the_entry_it_is_called_is_no_evidence() {
    let entry = |statement: Option<&str>| {
        let entry =
            EntrySeen { index: Some(3), entry_id: "00".repeat(32), statement: statement.map(str::to_owned) };
        let evidence = Evidence::Entries { checkpoint: None, entries: vec![entry] };
        judge(&alarm(AlarmKind::ChainFork, evidence), &[], None).verdict
    };
    assert_eq!(entry(Some("AAAA")), Verdict::Wrong);
    assert_eq!(entry(Some("!")), Verdict::Wrong);
    assert_eq!(entry(None), Verdict::OnWord);
}

fn chain_fork(statements: &[&SignedStatement]) -> Alarm {
    let entry = |(index, statement): (usize, &&SignedStatement)| EntrySeen {
        index: Some(index as u64),
        entry_id: statement.digest().to_string(),
        statement: Some(data_encoding::BASE64URL_NOPAD.encode(statement.bytes())),
    };
    let entries = statements.iter().enumerate().map(entry).collect();
    alarm(AlarmKind::ChainFork, Evidence::Entries { checkpoint: None, entries })
}

#[test]
fn two_successors_of_one_receipt_are_shown_by_their_issuers_own_signatures() {
    let key = scitt::SigningKey::generate(Algorithm::EdDsa).unwrap();
    let other = scitt::SigningKey::generate(Algorithm::EdDsa).unwrap();
    let verdict = |statements: &[&SignedStatement]| judge(&chain_fork(statements), &[], None).verdict;
    let receipt = testkit::receipt;
    let genesis = receipt(1).sign(&key).unwrap();
    let again = receipt(2).sign(&key).unwrap();
    let next = |id| receipt(id).after(genesis.digest(), 1).sign(&key).unwrap();
    let (left, right) = (next(3), next(4));
    assert_eq!(verdict(&[&left, &right]), Verdict::Equivocation);
    assert_eq!(verdict(&[&genesis, &again]), Verdict::Equivocation);
    // An honest chain, the same receipt twice, two issuers, and a single statement are not a fork.
    assert_eq!(verdict(&[&genesis, &left]), Verdict::Wrong);
    assert_eq!(verdict(&[&left, &left]), Verdict::Wrong);
    assert_eq!(verdict(&[&genesis, &receipt(1).sign(&other).unwrap()]), Verdict::Wrong);
    assert_eq!(verdict(&[&left]), Verdict::OnWord);
    // A forged signature in the issuer's name.
    let mut bytes = right.bytes().to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let forged = SignedStatement::parse(bytes).unwrap();
    assert_eq!(verdict(&[&left, &forged]), Verdict::Wrong);
}
