//! The profile of execution receipts.

use scitt::header::{HashEnvelope, Header};
use serde_json::Value;

use super::{AER_JSON, AerOptions, AerRecord, AerRedacted, check};
use crate::agentroa::ChainRecord;
use crate::answers::Answers;
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::profile::{Profile, TypeProfile, TypedRecord, check_hash_algorithm, other_record};
use crate::section::Section;
use crate::violation::Violation;

impl Profile for AerOptions {
    fn name(&self) -> &'static str {
        "aer"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[AER_JSON]
    }

    fn read_options(&self, section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(AerOptions::read(section))
    }

    fn options(&self) -> Option<Value> {
        Some(self.document())
    }

    fn read_record(&self, header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation> {
        AerRecord::read(header, payload).map(TypedRecord::new)
    }

    fn read_hash(
        &self,
        header: &Header,
        envelope: &HashEnvelope,
        _payload: &[u8],
    ) -> Result<TypedRecord, Violation> {
        check_hash_algorithm(envelope)?;
        Ok(TypedRecord::new(AerRedacted::read(header)))
    }

    fn check(
        &self,
        statement: &Authenticated<'_>,
        record: &TypedRecord,
        _log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        match (record.get::<AerRecord>(), record.get::<AerRedacted>(), record.get::<ChainRecord>()) {
            (Some(record), ..) => check::check(self, statement, record),
            (_, Some(redacted), _) => check::check_redacted(self, statement, redacted),
            (.., Some(_)) => check::check_chain(self, statement),
            _ => Err(other_record()),
        }
    }
}
