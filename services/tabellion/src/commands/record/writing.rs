//! Files of records: their names, and the statement next to each.

use std::path::{Path, PathBuf};

use translators::{SessionRecord, TranslateError};

use super::sign::Recorder;
use crate::commands::statement::with_extension;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};

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

/// Writes a record, and its statement if there is a recorder. The statement is made first, so that a record that
/// breaks a rule is not written. Returns the paths.
pub fn write(
    record: &SessionRecord,
    file: &Path,
    recorder: Option<&Recorder>,
    existing: Existing,
) -> Result<Vec<PathBuf>, Failure> {
    let message = recorder.map(|recorder| recorder.sign(record.bytes(), file)).transpose()?;
    files::write(file, record.bytes(), Access::Ordinary, existing)?;
    let mut wrote = vec![file.to_owned()];
    if let Some((_, message)) = message {
        let statement = with_extension(file, "cose");
        files::write(&statement, &message, Access::Ordinary, existing)?;
        wrote.push(statement);
    }
    Ok(wrote)
}

/// Returns a name without characters that have a meaning in paths.
pub fn file_name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = text.chars().map(plain).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "session".to_owned() } else { name.to_owned() }
}
