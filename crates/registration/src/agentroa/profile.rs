//! The profiles of registry versions and policy documents.

use jose::members::quote;
use scitt::header::Header;
use serde_json::Value;

use super::{
    AGENTROA_POLICY, AGENTROA_REGISTRY, PolicyDocument, RegistryOptions, RegistryRecord, RegistryRule,
};
use crate::answers::Answers;
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::limits::MAX_STATEMENT;
use crate::profile::{HashSetting, Profile, ProfileRecord, TypeProfile, TypedRecord, other_record};
use crate::section::Section;
use crate::violation::Violation;

impl Profile for RegistryOptions {
    fn name(&self) -> &'static str {
        "agentroa_registry"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[AGENTROA_REGISTRY]
    }

    fn default_max_size(&self) -> u64 {
        MAX_STATEMENT
    }

    fn hash_setting(&self) -> HashSetting {
        HashSetting::None
    }

    fn read_options(&self, section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(RegistryOptions::read(section))
    }

    fn options(&self) -> Option<Value> {
        Some(self.document())
    }

    fn read_record(&self, header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation> {
        let record = RegistryRecord::read(payload)?;
        let id = record.signed().document().registry_id.as_str();
        let sub = header.sub().unwrap_or_default();
        match sub == id {
            true => Ok(TypedRecord::new(record)),
            false => {
                let detail = format!("found {}, needed the registry {}", quote(sub), quote(id));
                Err(RegistryRule::Subject.in_header("15/2", detail))
            }
        }
    }

    fn check(
        &self,
        statement: &Authenticated<'_>,
        record: &TypedRecord,
        _log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        RegistryOptions::check(self, statement, record.get().ok_or_else(other_record)?)
    }
}

impl ProfileRecord for RegistryRecord {
    fn facts(&self, facts: &mut Facts) {
        let document = self.signed().document();
        facts.text("registry", document.registry_id.as_str());
        facts.text("registry_digest", &self.signed().digest().to_string());
        facts.put("epoch", document.epoch.into());
        facts.put("sequence", document.sequence.into());
        facts.put("issued_at", document.issued_at.unix_seconds().into());
        facts.put("keys", document.keys.len().into());
        facts.put("revocations", document.revocations.len().into());
    }

    fn payload_json(&self) -> Option<&Value> {
        Some(&self.document)
    }
}

/// The profile of policy documents, which has no options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyDocumentProfile;

impl Profile for PolicyDocumentProfile {
    fn name(&self) -> &'static str {
        "agentroa_policy"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[AGENTROA_POLICY]
    }

    fn read_options(&self, _section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(PolicyDocumentProfile)
    }

    fn options(&self) -> Option<Value> {
        None
    }

    fn read_record(&self, _header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation> {
        PolicyDocument::read(payload).map(TypedRecord::new)
    }

    fn check(
        &self,
        _statement: &Authenticated<'_>,
        _record: &TypedRecord,
        _log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        Ok(PermitDemands::default())
    }
}

impl ProfileRecord for PolicyDocument {
    fn facts(&self, facts: &mut Facts) {
        facts.text("policy_digest", self.digest());
    }

    fn payload_json(&self) -> Option<&Value> {
        Some(&self.document)
    }
}
