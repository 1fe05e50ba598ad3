//! Content types of the operator's statements, and the comparison of media types.

use std::borrow::Cow;

use scitt::header::{ContentType, Header};

/// The content type of a policy statement.
pub const POLICY_CONTENT_TYPE: &str = "application/vnd.tabellion.policy+json";
/// The content type of an erasure statement.
pub const ERASURE_CONTENT_TYPE: &str = "application/vnd.tabellion.erasure+json";
/// The content type of a clock correction.
pub const CLOCK_CORRECTION_CONTENT_TYPE: &str = "application/vnd.tabellion.clock-correction+json";
/// The content type of an operator's action.
pub const OPERATOR_ACTION_CONTENT_TYPE: &str = "application/vnd.tabellion.operator-action+json";
/// The content type of an operator's approval.
pub const OPERATOR_APPROVAL_CONTENT_TYPE: &str = "application/vnd.tabellion.operator-approval+json";
/// The content type of a head of the search index, which a key of the index signs instead of an operator's key.
pub(crate) const INDEX_HEAD_CONTENT_TYPE: &str = lookup_tree::HEAD_CONTENT_TYPE;
/// The media type of plain JSON.
pub(crate) const JSON: &str = "application/json";

/// The content types of operator statements.
pub const STATEMENTS: [&str; 6] = [
    POLICY_CONTENT_TYPE,
    ERASURE_CONTENT_TYPE,
    CLOCK_CORRECTION_CONTENT_TYPE,
    OPERATOR_ACTION_CONTENT_TYPE,
    OPERATOR_APPROVAL_CONTENT_TYPE,
    INDEX_HEAD_CONTENT_TYPE,
];

/// Returns whether a media type is that of an operator statement. Such entries are never erased.
pub fn is_operator_statement(media_type: &str) -> bool {
    STATEMENTS.contains(&essence(media_type).as_str())
}

/// Returns the content type, or the preimage content type of a hash envelope.
pub(crate) fn content_type(header: &Header) -> Option<&ContentType> {
    match header.hash_envelope() {
        Some(envelope) => envelope.preimage_content_type.as_ref(),
        None => header.content_type(),
    }
}

/// Formats a content type as text: a media type, or the number of a CoAP content format.
pub(crate) fn spell(content_type: &ContentType) -> Cow<'_, str> {
    match content_type {
        ContentType::Text(name) => Cow::Borrowed(name),
        ContentType::Id(id) => Cow::Owned(id.to_string()),
    }
}

/// Returns a media type without parameters and in lower case, for comparison.
pub fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
