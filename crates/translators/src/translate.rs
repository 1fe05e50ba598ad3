//! The translation: detection, reading, redaction, record.

use std::collections::BTreeMap;

use jose::json::{Limits, parse_strict};
use serde_json::{Map, Value, json};

use crate::account::TranslationAccount;
use crate::error::TranslateError;
use crate::format::Format;
use crate::limits::SOURCE_BYTES;
use crate::parts::{self, AboutSource, RecordPart, RecordTerms};
use crate::record::{self, SessionRecord, TRANSLATOR_VERSION};
use crate::redaction::{Redaction, Redactions};
use crate::session::Session;
use crate::source::{SessionSource, SourceFile};
use crate::{attribution, chained, claude, codex, cursor, detect, gemini, opencode, pi, qwen};

/// Settings of a translation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The format; detected if `None`.
    pub format: Option<Format>,
    /// What to leave out.
    pub redaction: Redaction,
    /// The root of the repository, which the paths of `file-attribution` are relative to; the working folder of the
    /// session if `None`.
    pub root: Option<String>,
    /// The records of earlier checkpoints by session: `sha256:` and the digest of their bytes
    /// ([`SessionRecord::digest`]).
    pub previous_records: BTreeMap<String, String>,
    /// Maximum size of a record in bytes: a session with more has several records.
    pub record_bytes: usize,
    /// Maximum number of values in a record: a session with more has several records.
    pub record_values: usize,
}

impl Default for Settings {
    /// Detects the format, redacts by default, and divides no session.
    fn default() -> Self {
        Self {
            format: None,
            redaction: Redaction::default(),
            root: None,
            previous_records: BTreeMap::new(),
            record_bytes: usize::MAX,
            record_values: usize::MAX,
        }
    }
}

/// The result of a translation.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The format of the source.
    pub format: Format,
    /// The records of each session of the source, with the omissions from each; mostly one for each session.
    pub records: Vec<(SessionRecord, Redactions)>,
    /// What became of each native entry.
    pub account: TranslationAccount,
}

impl Translation {
    /// Returns the records of each session: one, or its parts in their order.
    pub fn sessions(&self) -> impl Iterator<Item = &[(SessionRecord, Redactions)]> {
        self.records.chunk_by(|_, (next, _)| RecordPart::of(next.frame()).is_some_and(|part| part.number > 1))
    }
}

/// Translates a source.
///
/// # Errors
/// [`TranslateError`] if the source is empty, too large, in no known format, holds no session, or is a hash chain that
/// does not verify. Single broken entries are diagnostics of the [`TranslationAccount`].
pub fn translate(source: &SessionSource, settings: &Settings) -> Result<Translation, TranslateError> {
    source.check()?;
    let format = settings.format.or_else(|| detect::detect(source)).ok_or(TranslateError::UnknownFormat)?;
    let mut account = TranslationAccount::default();
    let mut sessions = read(format, source, &mut account)?;
    for session in &mut sessions {
        session.attribution = attribution::attribute(session, settings.root.as_deref(), &mut account);
    }
    if sessions.is_empty() {
        return Err(TranslateError::NoSession { format, broken: account.broken.into_iter().next() });
    }
    let terms = RecordTerms {
        about: AboutSource { format, sha256: source.sha256(), bytes: source.bytes(), account: &account },
        redaction: &settings.redaction,
        root: settings.root.as_deref().unwrap_or_default(),
        record_bytes: settings.record_bytes,
        record_values: settings.record_values,
    };
    let records = sessions.into_iter().flat_map(|session| {
        let previous = settings.previous_records.get(&session.id).map(String::as_str);
        parts::records(session, previous, &terms)
    });
    let records = records.collect();
    Ok(Translation { format, records, account })
}

fn read(
    format: Format,
    source: &SessionSource,
    account: &mut TranslationAccount,
) -> Result<Vec<Session>, TranslateError> {
    Ok(match format {
        Format::OpenCode => opencode::read(source, account),
        Format::Claude => claude::read(only(format, source)?, account),
        Format::Codex => codex::read(only(format, source)?, account),
        Format::Qwen => qwen::read(only(format, source)?, account),
        Format::Pi => pi::read(only(format, source)?, account),
        Format::Gemini => gemini::read(only(format, source)?, account),
        Format::Cursor => cursor::lines::read(only(format, source)?, account),
        Format::CursorText => cursor::text::read(only(format, source)?, account),
        Format::CursorComposer => cursor::composer::read(source, account),
        Format::Chained => chained::read(only(format, source)?, account)?,
    })
}

fn only(format: Format, source: &SessionSource) -> Result<&SourceFile, TranslateError> {
    match source.files() {
        [only] => Ok(only),
        files => Err(TranslateError::SeveralFiles { format, files: files.len() }),
    }
}

/// Redacts a record that exists, as a new record: with another `id`, the digest of the original as `redacted-from`, and
/// the omissions added to `source.redactions`.
///
/// # Errors
/// [`TranslateError::NotARecord`] if the bytes are not a JSON object with a session.
pub fn redact(bytes: &[u8], redaction: &Redaction) -> Result<(SessionRecord, Redactions), TranslateError> {
    let limits = Limits { bytes: SOURCE_BYTES, ..Limits::default() };
    let limits = Limits { depth: jose::json::MAX_DEPTH, ..limits };
    let refuse = |why: String| TranslateError::NotARecord(why);
    let mut value = parse_strict(bytes, limits).map_err(|error| refuse(error.to_string()))?;
    if value.pointer("/session/entries").is_none_or(|entries| !entries.is_array()) {
        return Err(refuse("it has no session with entries".to_owned()));
    }
    let session = record::session_id(&value).to_owned();
    let redactions = redaction.apply(&mut value);
    let original = record::digest(bytes);
    let id = record::identifier(&[&original, TRANSLATOR_VERSION, &redaction.fingerprint()]);
    if let Value::Object(members) = &mut value {
        members.insert("id".to_owned(), id.into());
        members.insert("redacted-from".to_owned(), original.into());
        list_redactions(members, &redactions);
    }
    Ok((SessionRecord::of(value, session), redactions))
}

/// Adds omissions to those that a record lists. Members of the record in another form make room for the list.
fn list_redactions(record: &mut Map<String, Value>, redactions: &Redactions) {
    let source = record.entry("source").or_insert_with(|| json!({}));
    if !source.is_object() {
        *source = json!({ "native": source.take() });
    }
    let Value::Object(source) = source else { return };
    let list = source.entry("redactions").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([list.take()]);
    }
    if let Value::Array(list) = list {
        list.extend(redactions.to_values());
    }
}
