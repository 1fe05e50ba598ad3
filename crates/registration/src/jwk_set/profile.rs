//! The profile of JWK Sets, which has no options.

use scitt::header::Header;
use serde_json::Value;

use super::{JWK_SET, JwkSetRecord};
use crate::answers::Answers;
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::profile::{HashSetting, Profile, ProfileRecord, TypeProfile, TypedRecord, other_record};
use crate::section::Section;
use crate::violation::Violation;

/// The profile of JWK Sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JwkSetProfile;

impl Profile for JwkSetProfile {
    fn name(&self) -> &'static str {
        "jwk_set"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[JWK_SET]
    }

    fn hash_setting(&self) -> HashSetting {
        HashSetting::None
    }

    fn read_options(&self, _section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(JwkSetProfile)
    }

    fn options(&self) -> Option<Value> {
        None
    }

    fn read_record(&self, _header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation> {
        JwkSetRecord::read(payload).map(TypedRecord::new)
    }

    fn check(
        &self,
        _statement: &Authenticated<'_>,
        record: &TypedRecord,
        _log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        record.get::<JwkSetRecord>().map(|_| PermitDemands::default()).ok_or_else(other_record)
    }
}

impl ProfileRecord for JwkSetRecord {
    fn facts(&self, facts: &mut Facts) {
        facts.put("keys", self.keys.len().into());
    }

    fn payload_json(&self) -> Option<&Value> {
        Some(&self.document)
    }
}
