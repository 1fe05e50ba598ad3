//! Receipts, tlog-proofs and checkpoints under a policy of witnesses.

use std::str::FromStr;

use tlog::checkpoint::Checkpoint;
use tlog::cosignature::cosign;
use tlog::key::KeyName;
use tlog::note::{LocalKey, Note, NoteSigner, SignatureLine};
use tlog::policy::WitnessPolicy;
use tlog::proof::TlogProof;

use super::*;
use scitt::key::KeyEnd;

fn name(text: &str) -> KeyName {
    text.parse().unwrap()
}

fn checkpoint_key() -> LocalKey {
    LocalKey::new(name(ORIGIN), ed25519_dalek::SigningKey::from_bytes(&[1; 32])).unwrap()
}

fn witness(number: u8) -> LocalKey {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[number; 32]);
    LocalKey::cosigner(name(&format!("w{number}.example")), secret).unwrap()
}

/// Three witnesses, of which two must agree; and further lines.
fn policy(quorum: &str) -> WitnessPolicy {
    let mut text = String::new();
    for number in 2..=4 {
        text += &format!("witness w{number} {}\n", witness(number).key());
    }
    WitnessPolicy::from_str(&(text + "group two 2 w2 w3 w4\nquorum " + quorum + "\n")).unwrap()
}

/// A world whose log has a checkpoint key that is trusted.
fn world() -> World {
    let mut world = World::new();
    world.trust.logs[0].checkpoint_keys.push(checkpoint_key().key().to_string());
    world
}

fn note_of(size: TreeSize, root: RootHash, cosigners: &[u8]) -> Note {
    let checkpoint = Checkpoint::new(ORIGIN.parse().unwrap(), size, root).unwrap();
    let mut note = checkpoint.sign(&checkpoint_key()).unwrap();
    for number in cosigners {
        let at = NOW - 100 + u64::from(*number);
        note.add(cosign(&witness(*number), note.text(), at).unwrap()).unwrap();
    }
    note
}

impl World {
    fn checkpoint(&self, cosigners: &[u8]) -> Vec<u8> {
        let (root, _, size, _) = self.log.grow(&self.statement);
        note_of(size, root, cosigners).to_string().into_bytes()
    }

    fn proof(&self, cosigners: &[u8]) -> Vec<u8> {
        let (_, index, _, path) = self.log.grow(&self.statement);
        TlogProof::new(index, path, &self.checkpoint(cosigners)).unwrap().to_string().into_bytes()
    }

    fn show(&self, tree: TreeProof<'_>, policy: Option<&WitnessPolicy>) -> StatementVerdict {
        let statement = self.transparent();
        let evidence = StatementEvidence { statement: &statement, ..StatementEvidence::default() };
        verify_with_checkpoint(&evidence, &CheckpointEvidence { tree, policy }, &self.trust, NOW)
    }

    fn show_bare(&self, tree: TreeProof<'_>, policy: Option<&WitnessPolicy>) -> StatementVerdict {
        let statement = self.statement.bytes();
        let evidence = StatementEvidence { statement, ..StatementEvidence::default() };
        verify_with_checkpoint(&evidence, &CheckpointEvidence { tree, policy }, &self.trust, NOW)
    }
}

fn detail(verdict: &StatementVerdict, name: CheckName) -> String {
    verdict.checks_named(name).next().unwrap().detail.clone()
}

#[test]
fn a_checkpoint_that_enough_witnesses_cosigned_is_told_with_their_names_and_the_newest_time() {
    let (world, policy) = (world(), policy("two"));
    for (tree, receipts) in
        [(TreeProof::Checkpoint(&world.checkpoint(&[2, 4])), 1), (TreeProof::Proof(&world.proof(&[2, 4])), 1)]
    {
        let verdict = world.show(tree, Some(&policy));
        assert_verified(&verdict);
        assert_eq!(verdict.receipts.len(), receipts);
        assert_eq!(detail(&verdict, CheckName::Witnesses), "2 of 3 (w2, w4), newest 2026-11-18T11:05:04Z");
        let checkpoint = verdict.checkpoint.unwrap();
        assert_eq!((checkpoint.origin.as_str(), checkpoint.tree_size), (ORIGIN, 9));
        assert_eq!(checkpoint.cosigned[0], WitnessCosignature { witness: "w2".into(), at: NOW - 98 });
    }
}

#[test]
fn too_few_witnesses_fail_and_a_cosignature_of_something_else_is_none() {
    let (world, policy) = (world(), policy("two"));
    assert_failed(
        &world.show(TreeProof::Checkpoint(&world.checkpoint(&[3])), Some(&policy)),
        Code::QuorumNotMet,
    );
    assert_failed(&world.show(TreeProof::Proof(&world.proof(&[])), Some(&policy)), Code::QuorumNotMet);
    // The line of a witness under another checkpoint, put under this one.
    let borrowed = cosign(&witness(2), "log.example\n1\nAAAA\n", NOW).unwrap();
    let mut note = Note::parse(&world.checkpoint(&[3])).unwrap();
    note.add(borrowed).unwrap();
    let verdict = world.show(TreeProof::Checkpoint(note.to_string().as_bytes()), Some(&policy));
    assert_failed(&verdict, Code::QuorumNotMet);
    assert!(detail(&verdict, CheckName::Witnesses).starts_with("1 of 3 (w3)"), "{verdict:#?}");
}

#[test]
fn a_quorum_that_is_required_and_not_shown_is_not_verified() {
    let (world, policy) = (world(), policy("two"));
    assert_not_verified(&world.show(TreeProof::NotShown, Some(&policy)), Code::NoCheckpoint);
}

#[test]
fn without_a_policy_and_with_one_that_asks_for_nobody_witnesses_are_not_checked() {
    let world = world();
    let none = policy("none");
    for policy in [None, Some(&none)] {
        for tree in [TreeProof::NotShown, TreeProof::Proof(&world.proof(&[2]))] {
            let verdict = world.show(tree, policy);
            let required = policy.is_some() && matches!(tree, TreeProof::NotShown);
            match required {
                true => assert_not_verified(&verdict, Code::NoCheckpoint),
                false => assert_verified(&verdict),
            }
            assert_eq!(state(&verdict, CheckName::Witnesses), Some(CheckState::NotDone));
        }
    }
}

#[test]
fn a_tlog_proof_under_a_trusted_key_is_as_good_as_a_receipt() {
    let world = world();
    let verdict = world.show_bare(TreeProof::Proof(&world.proof(&[])), None);
    assert_verified(&verdict);
    assert_eq!(detail(&verdict, CheckName::Inclusion), "leaf 4 of 9 (tlog-proof)");
    assert_not_verified(&world.show_bare(TreeProof::NotShown, None), Code::NoReceipt);
    // A checkpoint alone shows nothing about a statement.
    let checkpoint = world.checkpoint(&[2, 3]);
    let verdict = world.show_bare(TreeProof::Checkpoint(&checkpoint), None);
    assert_eq!(verdict.outcome, VerificationOutcome::NotVerified, "{verdict:#?}");
}

#[test]
fn a_tlog_proof_counts_also_if_the_statement_has_a_receipt_of_an_unknown_log() {
    let mut world = world();
    world.trust.logs[0].iss = Some("https://other.example".into());
    assert_not_verified(&world.show(TreeProof::NotShown, None), Code::UnknownLog);
    let proof = world.proof(&[]);
    let verdict = world.show(TreeProof::Proof(&proof), None);
    assert_verified(&verdict);
    assert!(!verdict.receipts[0].verified, "{verdict:#?}");
    let statement = world.transparent();
    let evidence =
        StatementEvidence { statement: &statement, receipts: &[b"nonsense"], ..StatementEvidence::default() };
    let shown = CheckpointEvidence { tree: TreeProof::Proof(&proof), policy: None };
    let verdict = verify_with_checkpoint(&evidence, &shown, &world.trust, NOW);
    assert_eq!(verdict.outcome, VerificationOutcome::Failed, "a failed receipt decides: {verdict:#?}");
}

#[test]
fn a_tlog_proof_is_checked_with_the_hash_of_its_statement_alone() {
    let (one, other) = (world(), world());
    let verdict = |world: &World| {
        verify_tlog_proof_of(world.statement.digest(), &one.proof(&[2, 3]), Some(&policy("two")), &one.trust)
    };
    assert_eq!((verdict(&one).outcome, verdict(&one).reason), (VerificationOutcome::Verified, None));
    let refused = verdict(&other);
    assert_eq!(
        (refused.outcome, refused.reason),
        (VerificationOutcome::Failed, Some(Code::TlogProofMismatch))
    );
}

#[test]
fn a_log_may_be_believed_because_the_policy_names_it() {
    let mut world = world();
    world.trust.logs[0].checkpoint_keys.clear();
    let proof = world.proof(&[2, 3]);
    assert_not_verified(
        &world.show(TreeProof::Proof(&proof), Some(&policy("two"))),
        Code::UnknownCheckpointKey,
    );
    let text = format!("log {}\n{}", checkpoint_key().key(), policy("two"));
    assert_verified(&world.show(TreeProof::Proof(&proof), Some(&text.parse().unwrap())));
}

#[test]
fn a_proof_of_another_statement_and_a_checkpoint_of_another_tree_do_not_count() {
    let (one, other, policy) = (world(), world(), policy("two"));
    let verdict = one.show(TreeProof::Proof(&other.proof(&[2, 3])), Some(&policy));
    assert_failed(&verdict, Code::TlogProofMismatch);
    assert_eq!(state(&verdict, CheckName::Witnesses), Some(CheckState::NotDone));
    let newer = note_of(TreeSize::new(12), RootHash::from_bytes([7; 32]), &[2, 3]).to_string();
    let verdict = one.show(TreeProof::Checkpoint(newer.as_bytes()), Some(&policy));
    assert_not_verified(&verdict, Code::CheckpointOtherTree);
}

#[test]
fn two_roots_of_one_size_are_a_failure_whoever_cosigned_them() {
    let (world, policy) = (world(), policy("two"));
    let forked = note_of(TreeSize::new(9), RootHash::from_bytes([7; 32]), &[2, 3, 4]).to_string();
    let verdict = world.show(TreeProof::Checkpoint(forked.as_bytes()), Some(&policy));
    assert_failed(&verdict, Code::CheckpointRootMismatch);
    assert_eq!(state(&verdict, CheckName::Witnesses), Some(CheckState::NotDone));
}

#[test]
fn a_checkpoint_that_the_log_did_not_sign_is_refused() {
    let (world, policy) = (world(), policy("two"));
    let mut note = Note::parse(&world.checkpoint(&[2, 3])).unwrap();
    let forged = SignatureLine::ed25519(checkpoint_key().key(), [9; 64]);
    note = Note::from_parts(note.text(), [vec![forged], note.signatures()[1..].to_vec()].concat()).unwrap();
    let verdict = world.show(TreeProof::Checkpoint(note.to_string().as_bytes()), Some(&policy));
    assert_failed(&verdict, Code::CheckpointSignatureInvalid);
    note = Note::from_parts(note.text(), note.signatures()[1..].to_vec()).unwrap();
    let verdict = world.show(TreeProof::Checkpoint(note.to_string().as_bytes()), Some(&policy));
    assert_not_verified(&verdict, Code::UnknownCheckpointKey);
    for nonsense in [&b""[..], b"nonsense", &[0xff; 9]] {
        assert_failed(&world.show(TreeProof::Checkpoint(nonsense), Some(&policy)), Code::MalformedCheckpoint);
        assert_failed(&world.show(TreeProof::Proof(nonsense), Some(&policy)), Code::MalformedTlogProof);
    }
}

#[test]
fn a_tampered_statement_is_not_saved_by_witnesses() {
    let (world, policy) = (world(), policy("two"));
    let other = builder(&world.issuer).sub("other").sign(&world.issuer).unwrap();
    let evidence = StatementEvidence { statement: other.bytes(), ..StatementEvidence::default() };
    let proof = world.proof(&[2, 3, 4]);
    let checkpoint_evidence = CheckpointEvidence { tree: TreeProof::Proof(&proof), policy: Some(&policy) };
    assert_failed(
        &verify_with_checkpoint(&evidence, &checkpoint_evidence, &world.trust, NOW),
        Code::TlogProofMismatch,
    );
}

#[test]
fn a_cut_or_changed_proof_never_verifies_as_more_than_it_was() {
    let (world, policy) = (world(), policy("two"));
    let proof = world.proof(&[2, 3]);
    for place in 0..proof.len() {
        let mut changed = proof.clone();
        changed[place] ^= 1;
        let verdict = world.show_bare(TreeProof::Proof(&changed), Some(&policy));
        if verdict.is_verified() {
            let cosigned = verdict.checkpoint.unwrap().cosigned;
            assert_eq!(cosigned.len(), 2, "byte {place} made a quorum of {cosigned:?}");
        }
        assert!(!world.show_bare(TreeProof::Proof(&proof[..place]), Some(&policy)).is_verified());
    }
}

#[test]
fn a_checkpoint_by_itself_is_verified_with_any_key_that_is_believed() {
    let (world, policy) = (world(), policy("two"));
    let (note, nobody) = (world.checkpoint(&[2, 3]), TrustStore::default());
    let outcome = |note: &[u8], keys: &[tlog::key::VerifierKey], policy, trust| {
        let verdict = verify_checkpoint(note, keys, policy, trust);
        (verdict.outcome, verdict.reason)
    };
    let verified = (VerificationOutcome::Verified, None);
    assert_eq!(outcome(&note, &[], None, &world.trust), verified);
    assert_eq!(outcome(&note, &[checkpoint_key().key().clone()], Some(&policy), &nobody), verified);
    let unknown = (VerificationOutcome::NotVerified, Some(Code::UnknownCheckpointKey));
    assert_eq!(outcome(&note, &[], None, &nobody), unknown);
    assert_eq!(outcome(&note, &[witness(2).key().clone()], None, &nobody), unknown, "a witness is not a log");
    let few = (VerificationOutcome::Failed, Some(Code::QuorumNotMet));
    assert_eq!(outcome(&world.checkpoint(&[2]), &[], Some(&policy), &world.trust), few);
    let nonsense = (VerificationOutcome::Failed, Some(Code::MalformedCheckpoint));
    assert_eq!(outcome(b"nonsense", &[], None, &world.trust), nonsense);
}

#[test]
fn a_checkpoint_of_a_retired_key_counts_only_below_the_size_of_its_successor() {
    let mut world = world();
    let key = world.trust.logs[0].checkpoint_keys.pop().unwrap();
    let checkpoint = world.checkpoint(&[]);
    for (size, expected) in [(10, None), (9, Some(Code::LogKeyRetired))] {
        let end = KeyEnd { retired_size: Some(size), ..KeyEnd::default() };
        world.trust.logs[0].retired_checkpoint_keys = vec![RetiredCheckpointKey { key: key.clone(), end }];
        let verdict = verify_checkpoint(&checkpoint, &[], None, &world.trust);
        let failed = verdict.checks.iter().find(|check| check.state == CheckState::Failed);
        assert_eq!(failed.and_then(|check| check.code), expected, "{verdict:?}");
    }
}
