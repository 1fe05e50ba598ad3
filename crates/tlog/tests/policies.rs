//! Policies: what they ask for, and what is not a policy (C2SP tlog-policy).

use std::collections::HashSet;

use ed25519_dalek::SigningKey;
use tlog::checkpoint::Checkpoint;
use tlog::cosignature::cosign;
use tlog::key::KeyName;
use tlog::note::{LocalKey, Note, NoteSigner};
use tlog::policy::{MAX_OF_EACH, NotAPolicy, PolicyLineError, WitnessPolicy};

fn name(text: &str) -> KeyName {
    text.parse().expect("a name")
}

fn log() -> LocalKey {
    LocalKey::new(name("log.example"), SigningKey::from_bytes(&[1; 32])).expect("a key")
}

fn witness(number: u8) -> LocalKey {
    let secret = SigningKey::from_bytes(&[number; 32]);
    LocalKey::cosigner(name(&format!("w{number}.example")), secret).expect("a key")
}

fn checkpoint() -> Note {
    let head = Checkpoint::new(
        "log.example".parse().expect("an origin"),
        merkle::TreeSize::EMPTY,
        merkle::empty_root(),
    );
    head.expect("a checkpoint").sign(&log()).expect("signed")
}

/// The checkpoint with the cosignatures of these witnesses, at time 100 plus the number.
fn cosigned_by(numbers: &[u8]) -> Note {
    let mut note = checkpoint();
    for number in numbers {
        let line = cosign(&witness(*number), note.text(), 100 + u64::from(*number)).expect("cosigned");
        note.add(line).expect("room");
    }
    note
}

/// Witnesses 2 to 5, and these further lines.
fn policy(rest: &str) -> Result<WitnessPolicy, NotAPolicy> {
    let mut text = format!("log {} https://log.example/\n", log().key());
    for number in 2..=5 {
        text += &format!("witness w{number} {}\thttps://w{number}.example/\n", witness(number).key());
    }
    (text + rest).parse()
}

fn flaw(rest: &str) -> PolicyLineError {
    match policy(rest) {
        Err(NotAPolicy::Line { flaw, .. }) => flaw,
        other => panic!("{rest:?}: {other:?}"),
    }
}

#[test]
fn a_threshold_is_met_by_that_many_witnesses_and_not_by_one_less() {
    let policy = policy("group g 2 w2 w3 w4\nquorum g\n").expect("a policy");
    assert!(!policy.judge(&cosigned_by(&[3])).met);
    let judged = policy.judge(&cosigned_by(&[4, 3]));
    assert!(judged.met);
    assert_eq!(judged.cosigned, [("w3".to_owned(), 103), ("w4".to_owned(), 104)]);
}

#[test]
fn a_witness_outside_of_the_quorum_is_told_and_does_not_count() {
    let policy = policy("group g all w2 w3\nquorum g\n").expect("a policy");
    let judged = policy.judge(&cosigned_by(&[2, 5]));
    assert!(!judged.met);
    assert_eq!(judged.cosigned.len(), 2);
}

#[test]
fn groups_can_be_members_of_groups() {
    let policy =
        policy("group a any w2 w3\ngroup b all w4 w5\ngroup g all a b\nquorum g\n").expect("a policy");
    assert!(policy.judge(&cosigned_by(&[3, 4, 5])).met);
    assert!(!policy.judge(&cosigned_by(&[2, 3, 4])).met);
    assert!(policy.is_met_by(&HashSet::from(["w2", "w4", "w5"])));
}

#[test]
fn a_quorum_can_be_one_witness_or_nobody() {
    let one = policy("quorum w2\n").expect("a policy");
    assert!(one.judge(&cosigned_by(&[2])).met && !one.judge(&cosigned_by(&[3])).met);
    let nobody = policy("quorum none\n").expect("a policy");
    assert!(nobody.judge(&checkpoint()).met);
    assert_eq!(nobody.quorum_name(), None);
}

#[test]
fn a_signature_of_the_log_is_no_cosignature() {
    let policy = policy("quorum w2\n").expect("a policy");
    let text = checkpoint().text().to_owned();
    let plain = LocalKey::new(name("w2.example"), SigningKey::from_bytes(&[2; 32])).expect("a key");
    assert!(!policy.judge(&Note::sign(&text, &[&plain]).expect("signed")).met);
    assert!(cosign(&plain, &text, 1).is_err());
    assert!(Note::sign(&text, &[&witness(2)]).is_err());
}

#[test]
fn a_policy_is_written_as_it_is_read() {
    let policy =
        policy("# a remark\n\n  group \t a any w2 w3 \ngroup g 1 a w4\nquorum g\n").expect("a policy");
    let again: WitnessPolicy = policy.to_string().parse().expect("the same");
    assert_eq!(again, policy);
    assert_eq!(policy.witnesses()[0].url.as_deref(), Some("https://w2.example/"));
}

#[test]
fn every_flaw_is_named_with_its_line() {
    assert_eq!(policy("").expect_err("no quorum"), NotAPolicy::NoQuorum);
    assert_eq!(flaw("quorum none\nquorum w2\n"), PolicyLineError::SecondQuorum);
    assert_eq!(flaw("quorum nobody\n"), PolicyLineError::Unknown("nobody".into()));
    assert_eq!(flaw("group g 0 w2\n"), PolicyLineError::Threshold(1));
    assert_eq!(flaw("group g 3 w2 w3\n"), PolicyLineError::Threshold(2));
    assert_eq!(flaw("group g 01 w2 w3\n"), PolicyLineError::Threshold(2));
    assert_eq!(flaw("group g any w9\n"), PolicyLineError::Unknown("w9".into()));
    assert_eq!(flaw("group g any g\n"), PolicyLineError::Unknown("g".into()));
    assert_eq!(flaw("group g 2 w2 w2\n"), PolicyLineError::MemberTaken("w2".into()));
    assert_eq!(flaw("group a any w2\ngroup b any w2\n"), PolicyLineError::MemberTaken("w2".into()));
    assert_eq!(flaw("group w2 any w3\n"), PolicyLineError::NameTaken("w2".into()));
    assert_eq!(flaw("group none any w3\n"), PolicyLineError::NameTaken("none".into()));
    assert_eq!(flaw(&format!("witness twin {}\n", witness(2).key())), PolicyLineError::KeyTaken);
    assert_eq!(flaw(&format!("witness log {}\n", log().key())), PolicyLineError::NotACosigner);
    assert_eq!(flaw(&format!("log {}\n", witness(2).key())), PolicyLineError::NotALogKey);
    assert_eq!(flaw(&format!("log {}\n", log().key())), PolicyLineError::KeyTaken);
    let renamed = LocalKey::new(name("other.example"), SigningKey::from_bytes(&[1; 32])).expect("a key");
    assert_eq!(flaw(&format!("log {}\n", renamed.key())), PolicyLineError::KeyTaken);
    assert_eq!(
        flaw(&format!("witness w6 {} ftp://w6\n", witness(6).key())),
        PolicyLineError::Url("ftp://w6".into())
    );
    for wrong in ["group g any\n", "quorum\n", "quorum a b\n", "witness w6\n", "log\n", "words\n"] {
        assert_eq!(flaw(wrong), PolicyLineError::Form, "{wrong}");
    }
    let line = policy("quorum nobody\n").expect_err("refused").to_string();
    assert!(line.starts_with("line 6: "), "{line}");
}

#[test]
fn a_control_character_other_than_tab_and_newline_is_refused_in_comments_too() {
    for wrong in ["quorum none\r\n", "# a \u{1} remark\n", "# \r\n", "quorum none\u{7f}\n", "\0\n"] {
        assert_eq!(flaw(wrong), PolicyLineError::ControlCharacter, "{wrong:?}");
    }
    policy("# a\ttab\n\n\tquorum\tnone").expect("a policy without a last newline");
}

#[test]
fn the_number_of_witnesses_is_bounded() {
    let line = |number: usize| {
        let secret = SigningKey::from_bytes(&[number as u8 + 100; 32]);
        let key = LocalKey::cosigner(name("w.example"), secret).expect("a key");
        format!("witness w{number} {}\n", key.key())
    };
    let text = |count: usize| (0..count).map(line).collect::<String>() + "quorum none\n";
    assert!(text(MAX_OF_EACH).parse::<WitnessPolicy>().is_ok());
    assert!(text(MAX_OF_EACH + 1).parse::<WitnessPolicy>().is_err());
}
