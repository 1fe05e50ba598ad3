//! Checkpoints of a session: their numbers, files and links. A checkpoint is one record or, if the session is too large
//! for one, a record for each of its parts, each with a number of its own.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use merkle::EntryDigest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use translators::{RecordPart, SessionRecord};

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
    /// Number of the checkpoint's last record, from 1.
    pub number: u64,
    /// The last record: `sha256:` and its digest.
    pub record: String,
    /// SHA-256 digest of the session in the records: a session that has not changed gets no checkpoint.
    session: String,
}

impl Checkpoint {
    /// Returns the checkpoint of these records after the last one; `None` if the session has not changed.
    pub fn after(last: Option<&Checkpoint>, records: &[&SessionRecord]) -> Option<Checkpoint> {
        let session = session_digest(records.iter().map(|record| record.value()));
        let newest = records.last().filter(|_| last.is_none_or(|last| last.session != session))?;
        let number = last.map_or(0, |last| last.number) + records.len() as u64;
        Some(Checkpoint { number, record: newest.digest(), session })
    }

    /// The numbers of the checkpoint's records, of which there are `records`.
    pub fn numbers(&self, records: usize) -> impl Iterator<Item = u64> {
        self.number.saturating_sub(records as u64) + 1..=self.number
    }
}

fn session_digest(records: impl Iterator<Item = impl Borrow<Value>>) -> String {
    let sessions: String = records.map(|record| record.borrow()["session"].to_string()).collect();
    EntryDigest::of(sessions.as_bytes()).to_string()
}

/// A session of a source, as the names of its checkpoints state it. Names of sources and sessions may become the same as
/// names of files, so a digest of both is part of them.
pub struct SessionOrigin(String);

impl SessionOrigin {
    /// The origin of a session. The path of the source is one without links.
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
        if let Some(last) = last {
            check_chain(&last.record, signed.values())?;
        }
        let newest = StoredRecord::read(file)?;
        let session = newest.session_digest(&signed)?;
        let files = signed.values().cloned().collect();
        Ok(Some((Checkpoint { number, record: newest.digest, session }, files)))
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

/// Checks that the records in these files follow the record `previous`, one after another.
fn check_chain<'f>(previous: &str, files: impl Iterator<Item = &'f PathBuf>) -> Result<(), Failure> {
    let mut previous = previous.to_owned();
    for file in files {
        let record = StoredRecord::read(file)?;
        if record.value[PREVIOUS] != previous {
            let what = format!("{} is a signed checkpoint that does not follow the last one", file.display());
            return Err(Failure::new(Exit::Exists, "exists", what).hint("move it away"));
        }
        previous = record.digest;
    }
    Ok(())
}

/// A signed record in a file.
struct StoredRecord {
    value: Value,
    /// `sha256:` and the digest of the record.
    digest: String,
}

impl StoredRecord {
    fn read(file: &Path) -> Result<Self, Failure> {
        let bytes = document::bytes(file)?;
        let digest = format!("sha256:{}", EntryDigest::of(&bytes));
        Ok(Self { value: document::parse(&bytes, file)?, digest })
    }

    /// Returns the digest of the session in the checkpoint whose newest record this is; empty, as of no session, if a part
    /// is missing.
    fn session_digest(&self, signed: &BTreeMap<u64, PathBuf>) -> Result<String, Failure> {
        let Some(part) = RecordPart::of(&self.value) else {
            return Ok(session_digest(std::iter::once(&self.value)));
        };
        if !part.is_last() || signed.len() < part.number {
            return Ok(String::new());
        }
        let files = signed.values().skip(signed.len() - part.number);
        let parts = files.map(|file| StoredRecord::read(file)).collect::<Result<Vec<_>, Failure>>()?;
        Ok(session_digest(parts.iter().map(|part| &part.value)))
    }
}
