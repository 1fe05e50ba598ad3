//! Files of records: their names, and the statement next to each.

use std::path::{Path, PathBuf};

use registration::limits::CONVERSATION_ITEMS;
use scitt::limits::STATEMENT_BYTES;
use translators::{RecordPart, SessionRecord, Settings, TranslateError};

use super::sign::{Recorder, check_unsigned};
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};

/// The state file of `--watch`, in the folder of the records.
pub const WATCH_STATE: &str = "watch-state.json";
/// The lock file next to it: one process follows a folder.
pub const WATCH_LOCK: &str = "watch-state.lock";
/// Maximum size in bytes of a record that a session is translated to: that of a statement, less room for its headers.
const RECORD_BYTES: usize = STATEMENT_BYTES - (64 << 10);
/// Maximum length of a name made of a text. File systems allow 255 bytes with what is added to it.
const LONGEST_NAME: usize = 150;

/// The settings of a translation to records that can be signed.
pub fn settings() -> Settings {
    Settings { record_bytes: RECORD_BYTES, record_values: CONVERSATION_ITEMS, ..Settings::default() }
}

/// The failure for a source that cannot be translated.
pub fn not_translated(path: &Path, error: &TranslateError) -> Failure {
    let code = match error {
        TranslateError::UnknownFormat => "unknown-format",
        TranslateError::BrokenChain { .. } => "broken-hash-chain",
        _ => "not-translated",
    };
    Failure::new(Exit::Failure, code, format!("{} cannot be translated", path.display()))
        .fact("because", error.to_string())
}

/// A record that keeps the rules of the profile, with the files that it goes to.
pub struct CheckedRecord<'r> {
    record: &'r SessionRecord,
    file: PathBuf,
    /// The signed record, if there is a recorder.
    statement: Option<Vec<u8>>,
}

impl<'r> CheckedRecord<'r> {
    /// Checks a record, and signs it if there is a recorder, unless the file of the statement holds what the recorder
    /// has signed before. A record that breaks a rule is not to be written.
    pub fn new(
        record: &'r SessionRecord,
        file: PathBuf,
        recorder: Option<&Recorder>,
    ) -> Result<Self, Failure> {
        let statement = match recorder {
            Some(recorder) => {
                let (statement, message) = recorder.sign(record.bytes(), &file)?;
                let earlier = recorder.signed_before(&statement, &message, &statement_file(&file));
                Some(earlier.unwrap_or(message))
            }
            None => {
                check_unsigned(record.bytes(), &file)?;
                None
            }
        };
        Ok(CheckedRecord { record, file, statement })
    }

    /// The record.
    pub fn record(&self) -> &'r SessionRecord {
        self.record
    }

    /// The path of the record.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The path of the statement.
    pub fn statement_file(&self) -> PathBuf {
        statement_file(&self.file)
    }

    /// Writes the record, and its statement if there is one. Returns the paths.
    pub fn write(&self, existing: Existing) -> Result<Vec<PathBuf>, Failure> {
        files::write(&self.file, self.record.bytes(), Access::Ordinary, existing)?;
        let mut wrote = vec![self.file.clone()];
        if let Some(statement) = &self.statement {
            files::write(&self.statement_file(), statement, Access::Ordinary, existing)?;
            wrote.push(self.statement_file());
        }
        Ok(wrote)
    }
}

fn statement_file(record: &Path) -> PathBuf {
    files::with_extension(record, "cose")
}

/// Returns the file for an imported record: of this name, with the number of its part if the session has several, or, if
/// another record is there, of this name with the record's identifier. So different sessions with equal names have a file
/// each, and an import that is repeated finds its own.
pub fn record_file(folder: &Path, name: &str, record: &SessionRecord) -> PathBuf {
    let name = match RecordPart::of(record.frame()) {
        Some(part) => format!("{}.part-{}", file_name(name), part.number),
        None => file_name(name),
    };
    let file = folder.join(format!("{name}.record.json"));
    let is_free = !file.exists() || files::read(&file).is_ok_and(|bytes| bytes == record.bytes());
    if is_free { file } else { folder.join(format!("{name}-{}.record.json", record.id())) }
}

/// Returns a name without characters that have a meaning in paths, cut off at [`LONGEST_NAME`].
pub fn file_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = text.chars().map(plain).take(LONGEST_NAME).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "session".to_owned() } else { name.to_owned() }
}
