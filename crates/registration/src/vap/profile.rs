//! The profiles of wire Verdicts and of audit records.

use scitt::header::Header;
use serde_json::Value;
use vap::audit::VAP_AUDIT;
use vap::verdict::ReceivedVerdict;

use super::{AuditOptions, AuditStatement, VAP_VERDICT, VerdictOptions, audit_options, verdict_options};
use crate::answers::{Answers, Questions};
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::profile::{HashSetting, Profile, ProfileRecord, TypeProfile, TypedRecord, other_record};
use crate::section::Section;
use crate::violation::Violation;

impl Profile for VerdictOptions {
    fn name(&self) -> &'static str {
        "vap_verdict"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[VAP_VERDICT]
    }

    fn hash_setting(&self) -> HashSetting {
        HashSetting::None
    }

    fn read_options(&self, section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(VerdictOptions::read(section))
    }

    fn options(&self) -> Option<Value> {
        Some(self.document())
    }

    fn read_record(&self, _header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation> {
        Ok(TypedRecord::new(ReceivedVerdict::read(payload)?))
    }

    fn check(
        &self,
        _statement: &Authenticated<'_>,
        record: &TypedRecord,
        _log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        verdict_options::check(self, record.get().ok_or_else(other_record)?)
    }
}

impl ProfileRecord for ReceivedVerdict {
    fn facts(&self, facts: &mut Facts) {
        let verdict = &self.verdict;
        facts.text("session_id", &verdict.session_id);
        facts.text("verdict", verdict.verdict.as_str());
        facts.put("signed", self.signature.is_some().into());
        if let Some(answered) = verdict.in_response_to {
            facts.text("in_response_to", answered.as_str());
        }
        if let Some(audit_ref) = &verdict.audit_ref {
            facts.text("audit_ref", audit_ref);
        }
        if let Some(signature) = &self.signature {
            facts.text("verifier_kid", signature.kid());
        }
    }

    fn payload_json(&self) -> Option<&Value> {
        Some(self.document())
    }
}

impl Profile for AuditOptions {
    fn name(&self) -> &'static str {
        "vap_audit"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[VAP_AUDIT]
    }

    fn hash_setting(&self) -> HashSetting {
        HashSetting::None
    }

    fn read_options(&self, section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(AuditOptions::read(section))
    }

    fn options(&self) -> Option<Value> {
        Some(self.document())
    }

    fn read_record(&self, _header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation> {
        AuditStatement::read(payload).map(TypedRecord::new)
    }

    fn questions(&self, _statement: &Authenticated<'_>, record: &TypedRecord, asked: &mut Questions) {
        if let Some(record) = record.get() {
            audit_options::questions(record, asked);
        }
    }

    fn check(
        &self,
        statement: &Authenticated<'_>,
        record: &TypedRecord,
        log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        audit_options::check(self, statement, record.get().ok_or_else(other_record)?, log)
    }
}

impl ProfileRecord for AuditStatement {
    fn facts(&self, facts: &mut Facts) {
        self.state(facts);
    }

    fn payload_json(&self) -> Option<&Value> {
        Some(AuditStatement::payload_json(self))
    }
}
