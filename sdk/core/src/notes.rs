//! Signed notes, checkpoints and cosignatures (C2SP).

use serde::Deserialize;
use serde_json::{Value, json};
use tlog::checkpoint::Checkpoint;
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::Note;

use crate::error::CoreError;

/// Verifies a note by known keys, and returns the names of those that signed it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyNote {
    note: String,
    /// Verifier keys.
    keys: Vec<String>,
}

/// Reads the text of a checkpoint, without signatures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadCheckpoint {
    text: String,
}

/// Verifies a witness's cosignature of a note.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadCosignature {
    note: String,
    /// Verifier key of the witness.
    witness: String,
}

/// Reads a verifier key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadVerifierKey {
    key: String,
}

impl VerifyNote {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let keys = self.keys.iter().map(|key| verifier_key(key)).collect::<Result<Vec<_>, _>>()?;
        let note = parse(&self.note)?;
        let signed = note.verify(&keys).map_err(|error| CoreError::new("note-not-verified", error))?;
        let names: Vec<_> = signed.iter().map(|key| key.name().to_string()).collect();
        Ok(json!({ "signed_by": names, "text": note.text() }))
    }
}

impl ReadCheckpoint {
    pub(crate) fn read(self) -> Result<Value, CoreError> {
        let checkpoint = Checkpoint::parse_text(&self.text)
            .map_err(|error| CoreError::new("malformed-checkpoint", error))?;
        Ok(json!({
            "origin": checkpoint.origin().to_string(),
            // Text: a size may exceed what numbers of JavaScript hold.
            "size": checkpoint.size().get().to_string(),
            "root": checkpoint.root().to_string(),
            "extensions": checkpoint.extensions(),
        }))
    }
}

impl ReadCosignature {
    pub(crate) fn read(self) -> Result<Value, CoreError> {
        let witness = verifier_key(&self.witness)?;
        let time = cosignature::verified(&parse(&self.note)?, &witness);
        let missing = || CoreError::new("not-cosigned", "the witness has not cosigned the note");
        time.map(|time| json!({ "time": time })).ok_or_else(missing)
    }
}

impl ReadVerifierKey {
    pub(crate) fn read(self) -> Result<Value, CoreError> {
        let key = verifier_key(&self.key)?;
        Ok(json!({ "name": key.name().to_string(), "id": key.id().to_string() }))
    }
}

/// Parses a verifier key.
pub fn verifier_key(text: &str) -> Result<VerifierKey, CoreError> {
    text.parse().map_err(|error: tlog::key::BadKey| CoreError::new("key-unusable", error))
}

fn parse(note: &str) -> Result<Note, CoreError> {
    Note::parse(note.as_bytes()).map_err(|error| CoreError::new("malformed-note", error))
}
