//! The files in `vectors/tlog`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use data_encoding::BASE64;
use merkle::{RootHash, TreeSize};
use serde::{Deserialize, de::DeserializeOwned};
use tlog::{
    checkpoint::Checkpoint,
    cosignature,
    key::VerifierKey,
    note::Note,
    witness::{self, AddCheckpoint, SeenTree},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteCase {
    why: String,
    note: String,
    keys: Vec<String>,
    /// Absent: the note is to be refused.
    signed_by: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyCase {
    why: String,
    vkey: String,
    name: Option<String>,
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointCase {
    why: String,
    text: String,
    origin: Option<String>,
    size: Option<String>,
    root: Option<String>,
    extensions: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CosignatureCase {
    why: String,
    witness: VerifierKeyText,
    note: String,
    /// Absent: the witness has not cosigned.
    time: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestCase {
    why: String,
    log: VerifierKeyText,
    seen: Option<SeenText>,
    request: String,
    status: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeenText {
    size: u64,
    root: String,
}

#[derive(Deserialize)]
struct VerifierKeyText(String);

impl VerifierKeyText {
    fn key(&self) -> VerifierKey {
        self.0.parse().expect("a key")
    }
}

impl SeenText {
    fn seen(&self) -> SeenTree {
        let root = BASE64.decode(self.root.as_bytes()).expect("base64").try_into().expect("32 bytes");
        SeenTree { size: TreeSize::new(self.size), root: RootHash::from_bytes(root) }
    }
}

/// The cases of a folder and of its folder of refusals; `true` for a refusal.
fn read<T: DeserializeOwned>(kind: &str) -> BTreeMap<String, (T, bool)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/tlog").join(kind);
    let sound = read_folder(&root).map(|(name, case)| (name, (case, false)));
    let refused = root.join("refused");
    let refused = read_folder(&refused).map(|(name, case)| (name, (case, true)));
    sound.chain(refused).collect()
}

fn read_folder<T: DeserializeOwned>(folder: &Path) -> impl Iterator<Item = (String, T)> {
    let files = fs::read_dir(folder).expect("a folder of vectors");
    let paths = files.map(|file| file.expect("a file").path());
    let paths: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    paths.into_iter().map(|path| {
        let text = fs::read(&path).expect("a vector");
        let case = serde_json::from_slice(&text);
        let name = path.display().to_string();
        let case = case.unwrap_or_else(|e| panic!("{name}: {e}"));
        (name, case)
    })
}

#[test]
fn every_note_vector_gets_its_verdict() {
    for (name, (case, refused)) in read::<NoteCase>("note") {
        let keys: Vec<VerifierKey> = case.keys.iter().map(|k| k.parse().expect("a key")).collect();
        let note = Note::parse(case.note.as_bytes()).map_err(|e| e.to_string());
        let verdict = note.and_then(|note| {
            assert_eq!(note.to_string(), case.note, "{name}: what was read is written back");
            let signed = note.verify(&keys).map_err(|e| e.to_string())?;
            Ok(signed.iter().map(|key| key.name().to_string()).collect::<Vec<_>>())
        });
        assert_eq!(case.signed_by.is_none(), refused, "{name}: in the right folder");
        assert_eq!(verdict.as_ref().ok(), case.signed_by.as_ref(), "{name}: {} {verdict:?}", case.why);
    }
}

#[test]
fn every_verifier_key_vector_gets_its_verdict() {
    for (name, (case, refused)) in read::<KeyCase>("vkey") {
        let key = case.vkey.parse::<VerifierKey>();
        assert_eq!(key.is_err(), refused, "{name}: {} {key:?}", case.why);
        assert_eq!(key.as_ref().ok().map(|key| key.name().to_string()), case.name, "{name}");
        assert_eq!(key.as_ref().ok().map(|key| key.id().to_string()), case.id, "{name}");
        assert!(key.is_err() || key.is_ok_and(|key| key.to_string() == case.vkey), "{name}");
    }
}

#[test]
fn every_checkpoint_vector_gets_its_verdict() {
    for (name, (case, refused)) in read::<CheckpointCase>("checkpoint") {
        let read = Checkpoint::parse_text(&case.text);
        assert_eq!(read.is_err(), refused, "{name}: {} {read:?}", case.why);
        let read = read.ok();
        let read = read.as_ref();
        assert_eq!(read.map(|c| c.text()), (!refused).then_some(case.text), "{name}");
        assert_eq!(read.map(|c| c.origin().to_string()), case.origin, "{name}");
        assert_eq!(read.map(|c| c.size().to_string()), case.size, "{name}");
        assert_eq!(read.map(|c| c.root().to_string()), case.root, "{name}");
        assert_eq!(read.map(|c| c.extensions().to_vec()), case.extensions, "{name}");
    }
}

#[test]
fn every_cosignature_vector_gets_its_time() {
    for (name, (case, refused)) in read::<CosignatureCase>("cosignature") {
        let note = Note::parse(case.note.as_bytes()).expect("a note");
        assert_eq!(case.time.is_none(), refused, "{name}: in the right folder");
        assert_eq!(cosignature::verified(&note, &case.witness.key()), case.time, "{name}: {}", case.why);
    }
}

#[test]
fn every_request_to_a_witness_gets_its_status() {
    for (name, (case, refused)) in read::<RequestCase>("add-checkpoint") {
        assert_eq!(case.status != 200, refused, "{name}: in the right folder");
        let status = match AddCheckpoint::parse(case.request.as_bytes()) {
            Err(_) => 400,
            Ok(request) => {
                assert_eq!(request.to_string(), case.request, "{name}: what was read is written back");
                let seen = case.seen.as_ref().map(SeenText::seen);
                match witness::judge(seen, &request, &[case.log.key()]) {
                    Ok(checkpoint) => {
                        assert!(seen.is_none_or(|seen| seen.size <= checkpoint.size()), "{name}");
                        200
                    }
                    Err(refusal) => refusal.status(),
                }
            }
        };
        assert_eq!(status, case.status, "{name}: {}", case.why);
    }
}
