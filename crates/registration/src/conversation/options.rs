//! Policy options for conversation records, `[type.conversation]`.

use jose::members::quote;
use scitt::header::ContentType;
use serde_json::{Value, json};

use super::rule::ConversationRule as Rule;
use super::{AGENT_CONVERSATION, ConversationRecord, Form, trace};
use crate::authenticated::Authenticated;
use crate::content_types::{content_type, essence};
use crate::section::{Section, name, switch};
use crate::violation::Violation;

/// Labels of registered header parameters, which trace-metadata cannot use.
const TAKEN: [i64; 20] = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 15, 16, 32, 33, 34, 35, 258, 259, 394];

/// Policy options for conversation records. The defaults are the strictest values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationOptions {
    /// The unprotected label of trace-metadata.
    pub trace_metadata_label: i64,
    /// True to admit a record with the content type `application/json`.
    pub accept_application_json: bool,
    /// Admitted prefixes of `version`.
    pub versions: Vec<String>,
    /// True to admit a CBOR record in tag 4149 (D8).
    pub allow_cbor_tag_4149: bool,
}

impl Default for ConversationOptions {
    fn default() -> Self {
        ConversationOptions {
            trace_metadata_label: trace::DEFAULT_LABEL,
            accept_application_json: false,
            versions: vec!["3.".to_owned()],
            allow_cbor_tag_4149: false,
        }
    }
}

impl ConversationOptions {
    /// Parses the policy's table `[type.conversation]`.
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let default = ConversationOptions::default();
        let versions = section.values("versions", name);
        ConversationOptions {
            trace_metadata_label: section
                .optional("trace_metadata_label", label)
                .unwrap_or(default.trace_metadata_label),
            accept_application_json: section.optional("accept_application_json", switch).unwrap_or(false),
            versions: if versions.is_empty() { default.versions } else { versions },
            allow_cbor_tag_4149: section.optional("allow_cbor_tag_4149", switch).unwrap_or(false),
        }
    }

    /// Serializes the table with every option.
    pub(crate) fn document(&self) -> Value {
        json!({
            "trace_metadata_label": self.trace_metadata_label,
            "accept_application_json": self.accept_application_json,
            "versions": self.versions,
            "allow_cbor_tag_4149": self.allow_cbor_tag_4149,
        })
    }
}

fn label(value: &Value) -> Result<i64, String> {
    match value.as_i64() {
        Some(taken) if TAKEN.contains(&taken) => Err(format!("label {taken} has a meaning of its own")),
        Some(label) => Ok(label),
        None => Err("an integer is needed here".to_owned()),
    }
}

/// Checks a record against the policy's options, then steps 8 and 9 of the registration policy.
pub(super) fn check(
    options: &ConversationOptions,
    statement: &Authenticated<'_>,
    record: &ConversationRecord,
) -> Result<(), Violation> {
    if record.form == Form::TaggedCbor && !options.allow_cbor_tag_4149 {
        return Err(Rule::Tag.in_payload("", "the policy does not admit a tag around a record"));
    }
    if !options.versions.iter().any(|version| record.version.starts_with(version.as_str())) {
        let detail =
            format!("the policy takes {}, not {}", options.versions.join(", "), quote(&record.version));
        return Err(Rule::Version.in_payload("/version", detail));
    }
    let label = options.trace_metadata_label;
    if let Some(metadata) = statement.statement().unprotected(label) {
        trace::check(label, metadata, record, statement.payload())?;
    }
    record.soundness()
}

/// Parses a record in a statement of type `application/json`, if the policy admits these.
pub(super) fn read_json(statement: &Authenticated<'_>) -> Result<ConversationRecord, Violation> {
    match Form::of(statement.payload()) {
        Some(Form::Json) => ConversationRecord::read(statement.header(), statement.payload()),
        _ => Err(Rule::Form.in_payload("", "application/json holds a record that begins with '{'")),
    }
}

/// Checks a record registered by its hash. `application/json` is not admitted here, because only the content would show
/// that it is a record.
pub(super) fn check_hash_envelope(
    options: &ConversationOptions,
    statement: &Authenticated<'_>,
) -> Result<(), Violation> {
    let header = statement.header();
    let name = content_type(header).and_then(ContentType::as_text).map(essence);
    if name.as_deref() != Some(AGENT_CONVERSATION) {
        return Err(Rule::Form
            .in_header("259", "only a record's own content type says that a hash is that of a record"));
    }
    let label = options.trace_metadata_label;
    match (statement.statement().unprotected(label), header.hash_envelope()) {
        (Some(metadata), Some(envelope)) => {
            trace::check_hash_envelope(label, metadata, envelope, statement.payload())
        }
        _ => Ok(()),
    }
}
