//! The profile of verification receipts.

use scitt::header::{HashEnvelope, Header};
use serde_json::Value;

use super::{Chain, Form, VRF_CBOR, VRF_JSON, VrfOptions, VrfRecord, VrfRedacted, options};
use crate::answers::{Answers, Questions};
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::profile::{HashSetting, Profile, TypeProfile, TypedRecord, other_record};
use crate::section::Section;
use crate::violation::Violation;

impl Profile for VrfOptions {
    fn name(&self) -> &'static str {
        "vrf"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[VRF_CBOR, VRF_JSON]
    }

    fn hash_setting(&self) -> HashSetting {
        HashSetting::Option("a VRF receipt is registered by its hash where `vrf.allow_redacted` says so")
    }

    fn read_options(&self, section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(VrfOptions::read(section))
    }

    fn options(&self) -> Option<Value> {
        Some(self.document())
    }

    fn read_record(&self, header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation> {
        VrfRecord::read(Form::of_header(header)?, header, payload).map(TypedRecord::new)
    }

    fn read_hash(
        &self,
        header: &Header,
        _envelope: &HashEnvelope,
        payload: &[u8],
    ) -> Result<TypedRecord, Violation> {
        VrfRedacted::read(header, payload).map(TypedRecord::new)
    }

    fn questions(&self, statement: &Authenticated<'_>, record: &TypedRecord, asked: &mut Questions) {
        if let Some(chain) = chain(record) {
            options::questions(self, statement, chain, asked);
        }
    }

    fn check(
        &self,
        statement: &Authenticated<'_>,
        record: &TypedRecord,
        log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        match (record.get::<VrfRecord>(), record.get::<VrfRedacted>()) {
            (Some(record), _) => options::check(self, statement, record, log),
            (_, Some(redacted)) => options::check_redacted(self, statement, redacted, log),
            _ => Err(other_record()),
        }
    }
}

fn chain(record: &TypedRecord) -> Option<Chain> {
    let complete = record.get::<VrfRecord>().map(|record| record.chain);
    complete.or_else(|| record.get::<VrfRedacted>().map(|redacted| redacted.headers.chain))
}
