//! The files in `vectors/tlog`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::DeserializeOwned};
use tlog::{checkpoint::Checkpoint, key::VerifierKey, note::Note};

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
