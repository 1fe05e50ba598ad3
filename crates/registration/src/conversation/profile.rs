//! The profile of conversation records.

use scitt::header::Header;
use serde_json::Value;

use super::{AGENT_CONVERSATION, ConversationOptions, ConversationRecord, options};
use crate::answers::Answers;
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::limits::MAX_STATEMENT;
use crate::profile::{PayloadHash, Profile, TypeProfile, TypedRecord, other_record};
use crate::section::Section;
use crate::violation::Violation;

impl Profile for ConversationOptions {
    fn name(&self) -> &'static str {
        "conversation"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[AGENT_CONVERSATION]
    }

    fn default_max_size(&self) -> u64 {
        MAX_STATEMENT
    }

    fn read_options(&self, section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(ConversationOptions::read(section))
    }

    fn options(&self) -> Option<Value> {
        Some(self.document())
    }

    fn read_record(&self, header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation> {
        ConversationRecord::read(header, payload).map(TypedRecord::new)
    }

    fn accepts_json(&self) -> bool {
        self.accept_application_json
    }

    fn read_opaque(&self, statement: &Authenticated<'_>) -> Result<Option<TypedRecord>, Violation> {
        options::read_json(statement).map(TypedRecord::new).map(Some)
    }

    fn check(
        &self,
        statement: &Authenticated<'_>,
        record: &TypedRecord,
        _log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        match (record.get::<ConversationRecord>(), record.get::<PayloadHash>()) {
            (Some(record), _) => options::check(self, statement, record)?,
            (_, Some(_)) => options::check_hash_envelope(self, statement)?,
            _ => return Err(other_record()),
        }
        Ok(PermitDemands::default())
    }
}
