//! Signing, opening, and surviving whatever is sent.

use ed25519_dalek::SigningKey;
use merkle::{RootHash, TreeSize, empty_root};
use proptest::prelude::*;
use tlog::{
    MAX_SIGNATURES,
    checkpoint::{Checkpoint, CheckpointError, NotACheckpoint, Origin},
    key::{KeyName, VerifierKey},
    note::{
        LocalKey, NotANote, NotVerified, Note, NoteSignError, NoteSigner, NoteSignerError, SignatureLine,
    },
};

fn key(name: &str, seed: u8) -> LocalKey {
    let name: KeyName = name.parse().expect("a name");
    LocalKey::new(name, SigningKey::from_bytes(&[seed; 32])).expect("a key")
}

fn checkpoint(size: u64) -> Checkpoint {
    let origin: Origin = "log.example".parse().expect("an origin");
    let root = RootHash::from_bytes([7; 32]);
    Checkpoint::new(origin, TreeSize::new(size), root).expect("a checkpoint")
}

#[test]
fn a_signed_checkpoint_opens_with_the_key_it_was_signed_with() {
    let log = key("log.example", 1);
    let bytes = checkpoint(5).sign(&log).expect("signed").to_string().into_bytes();
    let keys = [log.key().clone()];
    let origin = checkpoint(5).origin().clone();
    assert_eq!(Checkpoint::open(&bytes, &origin, &keys), Ok(checkpoint(5)));
}

#[test]
fn a_checkpoint_of_another_log_is_refused_even_if_the_key_is_known() {
    let log = key("log.example", 1);
    let bytes = checkpoint(5).sign(&log).expect("signed").to_string().into_bytes();
    let other = "other.example".parse().expect("an origin");
    let verdict = Checkpoint::open(&bytes, &other, &[log.key().clone()]);
    assert!(matches!(verdict, Err(CheckpointError::OtherLog { .. })), "{verdict:?}");
}

#[test]
fn a_checkpoint_signed_by_a_stranger_is_refused() {
    let bytes = checkpoint(5).sign(&key("log.example", 2)).expect("signed").to_string();
    let known = key("log.example", 1).key().clone();
    let verdict = Checkpoint::open(bytes.as_bytes(), checkpoint(5).origin(), &[known]);
    assert_eq!(verdict, Err(CheckpointError::NotVerified(NotVerified::NoKnownKey)));
}

#[test]
fn a_signature_for_one_head_is_not_one_for_another() {
    let log = key("log.example", 1);
    let small = checkpoint(5).sign(&log).expect("signed");
    let forged = Note::from_parts(&checkpoint(6).text(), small.signatures().to_vec());
    let verdict = forged.expect("a note").verify(&[log.key().clone()]).err();
    let name = log.key().name().clone();
    let id = log.key().id();
    assert_eq!(verdict, Some(NotVerified::BadSignature { name, id }));
}

#[test]
fn the_empty_tree_has_one_root() {
    let origin: Origin = "log.example".parse().expect("an origin");
    let with = |root| Checkpoint::new(origin.clone(), TreeSize::EMPTY, root);
    assert!(with(empty_root()).is_ok());
    assert_eq!(with(RootHash::from_bytes([0; 32])), Err(NotACheckpoint::EmptyRoot));
}

#[test]
fn a_witness_adds_its_line_once_and_the_note_still_verifies() {
    let (log, witness) = (key("log.example", 1), key("witness.example", 2));
    let mut note = checkpoint(5).sign(&log).expect("signed");
    let text = note.text().to_owned();
    let signature = witness.sign(text.as_bytes()).expect("signed");
    let line = SignatureLine::ed25519(witness.key(), signature);
    let line: SignatureLine = line.to_string().parse().expect("it reads back");
    for _ in 0..2 {
        note.add(line.clone()).expect("there is room");
    }
    assert_eq!(note.signatures().len(), 2);
    let keys = [log.key().clone(), witness.key().clone()];
    let note = Note::parse(note.to_string().as_bytes()).expect("a note");
    assert_eq!(note.verify(&keys).map(|signed| signed.len()), Ok(2));
}

#[test]
fn a_note_takes_no_more_signatures_than_are_read() {
    let witness = key("witness.example", 2);
    let mut note = checkpoint(5).sign(&key("log.example", 1)).expect("signed");
    for n in 1..MAX_SIGNATURES {
        note.add(SignatureLine::ed25519(witness.key(), [n as u8; 64])).expect("there is room");
    }
    let one_more = SignatureLine::ed25519(witness.key(), [0; 64]);
    assert_eq!(note.add(one_more), Err(NotANote::TooManySignatures));
    assert!(Note::parse(note.to_string().as_bytes()).is_ok());
}

#[test]
fn a_text_that_would_read_back_otherwise_is_not_signed() {
    let log = key("log.example", 1);
    for text in ["", "no newline", "a\r\n", "a\u{0}\n"] {
        let refused = Note::sign(text, &[&log]);
        assert!(matches!(refused, Err(NoteSignError::NotANote(_))), "{text:?}");
    }
    assert_eq!(Note::sign("a\n", &[]), Err(NoteSignError::NotANote(NotANote::Unsigned)));
}

#[test]
fn a_text_with_empty_lines_reads_back() {
    let log = key("log.example", 1);
    for text in ["\n", "\n\n", "a\n\nb\n", "a\n\n", "\u{2014} looks like a line\n"] {
        let note = Note::sign(text, &[&log]).expect("signed");
        let read = Note::parse(note.to_string().as_bytes()).expect("a note");
        assert_eq!(read, note);
        assert_eq!(read.text(), text);
        assert!(read.verify(&[log.key().clone()]).is_ok());
    }
}

#[test]
fn a_key_that_lives_elsewhere_may_fail() {
    struct Remote(VerifierKey);
    impl NoteSigner for Remote {
        fn key(&self) -> &VerifierKey {
            &self.0
        }
        fn sign(&self, _: &[u8]) -> Result<[u8; 64], NoteSignerError> {
            Err(NoteSignerError("the device does not answer".to_owned()))
        }
    }
    let remote = Remote(key("log.example", 1).key().clone());
    assert!(matches!(checkpoint(5).sign(&remote), Err(NoteSignError::Failed(_))));
}

#[test]
fn a_secret_key_does_not_show_in_debug_output() {
    let shown = format!("{:?}", key("log.example", 1));
    assert!(shown.contains("log.example"));
    assert!(!shown.contains("secret"));
}

#[test]
fn a_key_is_read_from_pkcs8() {
    // RFC 8410, section 10.3.
    let pem = "-----BEGIN PRIVATE KEY-----\n\
               MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
               -----END PRIVATE KEY-----\n";
    let name: KeyName = "log.example".parse().expect("a name");
    let key = LocalKey::from_pkcs8_pem(name.clone(), pem).expect("a key");
    let public = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";
    let shown: String = key.key().verifying_key().as_bytes().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(shown, public);
    assert!(LocalKey::from_pkcs8_pem(name, "not a key").is_err());
}

#[test]
fn names_have_no_spaces_pluses_or_control_characters() {
    let long = "a".repeat(256);
    for bad in ["", " ", "a b", "a+b", "a\nb", "a\u{0}", "a\u{a0}b", "a\u{3000}", &long] {
        assert!(bad.parse::<KeyName>().is_err(), "{bad:?}");
    }
    for good in ["a", "log.example/2026", "prüf.example", &long[..255]] {
        assert!(good.parse::<KeyName>().is_ok(), "{good:?}");
    }
}

fn edits() -> impl Strategy<Value = Vec<(usize, u8, u8)>> {
    proptest::collection::vec((0usize..600, any::<u8>(), 0u8..4), 1..5)
}

fn edited(text: &str, edits: Vec<(usize, u8, u8)>) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (at, byte, edit) in edits {
        let at = at % (bytes.len() + 1);
        match edit {
            0 => bytes.insert(at, byte),
            1 => bytes.insert(at, b'\n'),
            2 if at < bytes.len() => bytes[at] = byte,
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever happens to a note on its way: what opens is what was signed.
    #[test]
    fn a_damaged_checkpoint_opens_as_what_was_signed_or_not_at_all(edits in edits()) {
        let log = key("log.example", 1);
        let signed = checkpoint(5).sign(&log).expect("signed").to_string();
        let bytes = edited(&signed, edits);
        let keys = [log.key().clone()];
        if let Ok(opened) = Checkpoint::open(&bytes, checkpoint(5).origin(), &keys) {
            prop_assert_eq!(opened, checkpoint(5));
        }
    }

    #[test]
    fn a_damaged_note_that_is_read_is_written_back(edits in edits()) {
        let mut note = checkpoint(5).sign(&key("log.example", 1)).expect("signed");
        let line = SignatureLine::ed25519(key("witness.example", 2).key(), [3; 64]);
        note.add(line).expect("there is room");
        let bytes = edited(&note.to_string(), edits);
        if let Ok(note) = Note::parse(&bytes) {
            prop_assert_eq!(note.to_string().into_bytes(), bytes);
        }
    }

    #[test]
    fn a_damaged_checkpoint_text_that_is_read_is_written_back(edits in edits()) {
        if let Ok(text) = String::from_utf8(edited(&checkpoint(1_000_000).text(), edits))
            && let Ok(read) = Checkpoint::parse_text(&text)
        {
            prop_assert_eq!(read.text(), text);
        }
    }

    #[test]
    fn a_damaged_key_that_is_read_is_written_back(edits in edits()) {
        let text = key("log.example", 1).key().to_string();
        if let Ok(text) = String::from_utf8(edited(&text, edits))
            && let Ok(read) = text.parse::<VerifierKey>()
        {
            prop_assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Note::parse(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = Checkpoint::parse_text(&text);
        let _ = text.parse::<VerifierKey>();
        let _ = text.parse::<SignatureLine>();
    }
}
