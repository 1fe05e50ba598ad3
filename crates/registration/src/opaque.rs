//! Opaque payloads: those of content types that no other profile parses.

use scitt::header::{ContentType, Header};
use serde_json::Value;

use crate::answers::Answers;
use crate::authenticated::Authenticated;
use crate::content_types::{self, essence};
use crate::conversation::ConversationRecord;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::lookups::Lookups;
use crate::profile::{PayloadHash, Profile, ProfileRecord, TypeProfile, TypedRecord, other_record};
use crate::section::Section;
use crate::violation::Violation;

/// The profile of opaque payloads, which has no options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpaqueProfile;

/// A payload that is not parsed.
#[derive(Clone, Copy, Debug)]
pub struct OpaqueRecord;

impl Profile for OpaqueProfile {
    fn name(&self) -> &'static str {
        "opaque"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[]
    }

    fn read_options(&self, _section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(OpaqueProfile)
    }

    fn options(&self) -> Option<Value> {
        None
    }

    fn read_record(&self, _header: &Header, _payload: &[u8]) -> Result<TypedRecord, Violation> {
        Ok(TypedRecord::new(OpaqueRecord))
    }

    fn check(
        &self,
        _statement: &Authenticated<'_>,
        record: &TypedRecord,
        _log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        match record.get::<OpaqueRecord>().is_some() || record.get::<PayloadHash>().is_some() {
            true => Ok(PermitDemands::default()),
            false => Err(other_record()),
        }
    }
}

impl ProfileRecord for OpaqueRecord {
    fn facts(&self, _facts: &mut Facts) {}

    /// Adds the search values of plain JSON that is a conversation record, because a policy may have admitted it as one.
    fn lookups(&self, header: &Header, payload: Option<&[u8]>, found: &mut Lookups) {
        let media_type = header.content_type().and_then(ContentType::as_text).map(essence);
        if media_type.as_deref() == Some(content_types::JSON)
            && let Some(payload) = payload
            && let Ok(record) = ConversationRecord::read(header, payload)
        {
            record.lookups(header, Some(payload), found);
        }
    }

    fn document(&self) -> Value {
        Value::Null
    }
}
