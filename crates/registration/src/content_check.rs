//! The rules of a content type for a statement outside of a log, for relying parties that verify offline.
//!
//! Only the rules that depend on the statement alone: neither those of a policy nor those about the rest of the log, and
//! no signatures. A relying party that trusts a log's receipt knows that *a* policy admitted the statement, which may
//! have read the content type as opaque bytes.

use scitt::SignedStatement;

use crate::aer::{AerRecord, is_aer};
use crate::content_types::content_type;
use crate::conversation::{AGENT_CONVERSATION, ConversationRecord};
use crate::opaque::OpaqueRecord;
use crate::profile::PayloadHash;
use crate::record::Record;
use crate::violation::Violation;
use crate::vrf::VrfRedacted;

/// The extent of a check that found no broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCheck {
    /// The content type has no rules.
    NoRules,
    /// Header and content keep the rules.
    Complete,
    /// The statement contains a hash, whose header keeps the rules; the content was not shown.
    HeaderOnly,
    /// The payload is detached and was not shown.
    PayloadMissing,
}

/// Checks a statement against the rules of its content type. `given` is the payload of a detached statement, or the
/// content of which the statement contains the hash.
///
/// # Errors
/// The first rule that the statement breaks.
pub fn check_content(statement: &SignedStatement, given: Option<&[u8]>) -> Result<ContentCheck, Violation> {
    let header = statement.header();
    let hashed = header.hash_envelope().is_some();
    let Some(payload) = statement.payload().or(given.filter(|_| !hashed)) else {
        return Ok(ContentCheck::PayloadMissing);
    };
    let record = Record::of(header, payload)?;
    if let Some(conversation) = record.typed::<ConversationRecord>() {
        conversation.soundness()?;
    }
    match given.filter(|_| hashed) {
        Some(content) => check_disclosed(statement, &record, content),
        None if record.typed::<OpaqueRecord>().is_some() => Ok(ContentCheck::NoRules),
        None if record.typed::<PayloadHash>().is_some() && !is_conversation(statement) => {
            Ok(ContentCheck::NoRules)
        }
        None if hashed => Ok(ContentCheck::HeaderOnly),
        None => Ok(ContentCheck::Complete),
    }
}

/// Checks the content of a hash envelope. That it has the hash in the envelope is checked for VRF only; for the others
/// the verification of the payload does.
fn check_disclosed(
    statement: &SignedStatement,
    record: &Record,
    content: &[u8],
) -> Result<ContentCheck, Violation> {
    let header = statement.header();
    if let Some(redacted) = record.typed::<VrfRedacted>() {
        redacted.disclose(content)?;
    } else if is_conversation(statement) {
        ConversationRecord::read(header, content)?.soundness()?;
    } else if content_type(header).and_then(|name| name.as_text()).is_some_and(is_aer) {
        AerRecord::read(header, content)?;
    } else {
        return Ok(ContentCheck::NoRules);
    }
    Ok(ContentCheck::Complete)
}

fn is_conversation(statement: &SignedStatement) -> bool {
    let name = content_type(statement.header()).and_then(|name| name.as_text());
    name.map(crate::content_types::essence).as_deref() == Some(AGENT_CONVERSATION)
}
