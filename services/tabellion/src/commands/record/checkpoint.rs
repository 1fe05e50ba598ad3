//! Checkpoints of a session: their numbers, files and links.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use merkle::EntryDigest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use translators::SessionRecord;

use super::document;
use super::writing::file_name;
use crate::console::{Exit, Failure, files};

/// The member that names the record before.
const PREVIOUS: &str = "previous-record";
/// The ending of a signed record.
const SIGNED: &str = ".record.json.cose";
/// Number of hex digits of the digest in names of files.
const ORIGIN_DIGITS: usize = 12;

/// The last checkpoint of a session.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Number of the checkpoint, from 1.
    pub number: u64,
    /// The record: `sha256:` and its digest.
    pub record: String,
    /// SHA-256 digest of the session in the record: a session that has not changed gets no checkpoint.
    session: String,
}

impl Checkpoint {
    /// Returns the checkpoint after the last one; `None` if the session has not changed.
    pub fn after(last: Option<&Checkpoint>, record: &SessionRecord) -> Option<Checkpoint> {
        let session = session_digest(record.value());
        if last.is_some_and(|last| last.session == session) {
            return None;
        }
        Some(Checkpoint { number: last.map_or(1, |last| last.number + 1), record: record.digest(), session })
    }
}

fn session_digest(record: &Value) -> String {
    EntryDigest::of(record["session"].to_string().as_bytes()).to_string()
}

/// A session of a source, as the names of its checkpoints state it. Names of sources and sessions may become the same as
/// names of files, so a digest of both is part of them.
pub struct SessionOrigin(String);

impl SessionOrigin {
    /// The origin of a session.
    pub fn of(source: &Path, session: &str) -> SessionOrigin {
        let origin = [source.as_os_str().as_encoded_bytes(), b"\0", session.as_bytes()].concat();
        SessionOrigin(EntryDigest::of(&origin).to_string().chars().take(ORIGIN_DIGITS).collect())
    }

    /// Returns the name of the record's file of a checkpoint.
    pub fn record_file(&self, name: &str, number: u64) -> String {
        format!("{}-{}.{number}.record.json", file_name(name), self.0)
    }

    /// Returns the newest signed checkpoint in the folder, and the files of all that are newer than the last known one; `None`
    /// if there are none. A crash kept them out of the state, or the state is lost.
    ///
    /// # Errors
    /// If they do not follow the last known one, or cannot be read.
    pub fn newer(
        &self,
        folder: &Path,
        last: Option<&Checkpoint>,
    ) -> Result<Option<(Checkpoint, Vec<PathBuf>)>, Failure> {
        let known = last.map_or(0, |last| last.number);
        let signed: BTreeMap<u64, PathBuf> =
            self.signed(folder)?.filter(|(number, _)| *number > known).collect();
        let Some((&number, file)) = signed.last_key_value() else { return Ok(None) };
        let bytes = document::bytes(file)?;
        let record = document::parse(&bytes, file)?;
        let previous = record[PREVIOUS].as_str();
        if last.is_some_and(|last| number != known + 1 || previous != Some(&last.record)) {
            let what = format!("{} is a signed checkpoint that does not follow the last one", file.display());
            return Err(Failure::new(Exit::Exists, "exists", what).hint("move it away"));
        }
        let session = session_digest(&record);
        let newest = Checkpoint { number, record: format!("sha256:{}", EntryDigest::of(&bytes)), session };
        Ok(Some((newest, signed.into_values().collect())))
    }

    /// The signed checkpoints in a folder.
    fn signed(&self, folder: &Path) -> Result<impl Iterator<Item = (u64, PathBuf)>, Failure> {
        let entries = fs::read_dir(folder).map_err(|error| files::unreadable(folder, &error))?;
        let files = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let origin = format!("-{}", self.0);
        Ok(files.filter_map(move |file| {
            let name = file.file_name()?.to_str()?.strip_suffix(SIGNED)?;
            let (name, number) = name.rsplit_once('.')?;
            let number = number.parse().ok().filter(|_| name.ends_with(&origin))?;
            Some((number, file))
        }))
    }
}
