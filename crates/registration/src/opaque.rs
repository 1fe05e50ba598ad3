//! Opaque payloads: those of content types that no other profile parses.

use scitt::header::Header;
use serde_json::Value;

use crate::answers::Answers;
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::facts::Facts;
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
}
