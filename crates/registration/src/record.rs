//! Typed records: the payload of an authenticated statement, parsed as its content type requires.

use std::any::Any;

use lookup_tree::IndexHead;
use scitt::header::{ContentType, Header};
use search_terms::ParsedPayload;

use crate::authenticated::Authenticated;
use crate::clock_correction::ClockCorrection;
use crate::content_types::{
    CLOCK_CORRECTION_CONTENT_TYPE, ERASURE_CONTENT_TYPE, INDEX_HEAD_CONTENT_TYPE,
    OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE, POLICY_CONTENT_TYPE, essence,
};
use crate::erasure::Erasure;
use crate::facts::Facts;
use crate::index_head;
use crate::opaque::OpaqueRecord;
use crate::operator::{Action, Approval};
use crate::policy::Policy;
use crate::profile::TypedRecord;
use crate::profiles::profile_of;
use crate::violation::{Place, RuleName, Violation};

/// The content of a statement. The content type alone selects the variant: no policy can make a VRF receipt opaque.
#[derive(Clone, Debug)]
pub enum Record {
    /// A registration policy (`POLICY_CONTENT_TYPE`).
    Policy(Policy),
    /// An erasure of entries' bytes ([`ERASURE_CONTENT_TYPE`]).
    Erasure(Box<Erasure>),
    /// A correction of the log's time ([`CLOCK_CORRECTION_CONTENT_TYPE`]).
    ClockCorrection(Box<ClockCorrection>),
    /// A freeze, hold or release ([`OPERATOR_ACTION_CONTENT_TYPE`]).
    OperatorAction(Box<Action>),
    /// An operator's approval of a statement to be registered later ([`OPERATOR_APPROVAL_CONTENT_TYPE`]).
    OperatorApproval(Box<Approval>),
    /// A head of the search index ([`lookup_tree::HEAD_CONTENT_TYPE`]).
    IndexHead(Box<IndexHead>),
    /// A record of one of the profiles, or a payload that none of them parses.
    Typed(TypedRecord),
}

impl Record {
    /// Parses the payload as its content type requires. A violation refuses the statement under any policy.
    pub fn read(statement: &Authenticated<'_>) -> Result<Record, Violation> {
        Record::of(statement.header(), statement.payload())
    }

    /// Parses a payload without an authenticated issuer: for search and display, never for a decision.
    pub fn of(header: &Header, payload: &[u8]) -> Result<Record, Violation> {
        if let Some(envelope) = header.hash_envelope() {
            let profile = profile_of(envelope.preimage_content_type.as_ref());
            return profile.as_dyn().read_hash(header, envelope, payload).map(Record::Typed);
        }
        let name = header.content_type().and_then(ContentType::as_text).map(essence).unwrap_or_default();
        match name.as_str() {
            POLICY_CONTENT_TYPE => read_policy(payload),
            ERASURE_CONTENT_TYPE => {
                Erasure::from_payload(payload).map(|erasure| Record::Erasure(Box::new(erasure)))
            }
            CLOCK_CORRECTION_CONTENT_TYPE => {
                let correction = ClockCorrection::from_payload(payload)?;
                Ok(Record::ClockCorrection(Box::new(correction)))
            }
            OPERATOR_ACTION_CONTENT_TYPE => {
                Action::from_payload(payload).map(|action| Record::OperatorAction(Box::new(action)))
            }
            OPERATOR_APPROVAL_CONTENT_TYPE => {
                let approval = Approval::from_payload(payload)?;
                Ok(Record::OperatorApproval(Box::new(approval)))
            }
            INDEX_HEAD_CONTENT_TYPE => {
                index_head::read(payload).map(|head| Record::IndexHead(Box::new(head)))
            }
            _ => profile_of(header.content_type()).as_dyn().read_record(header, payload).map(Record::Typed),
        }
    }

    /// A record whose payload is not parsed.
    pub fn opaque() -> Record {
        Record::Typed(TypedRecord::new(OpaqueRecord))
    }

    /// Returns the record of a profile, such as [`VrfRecord`](crate::vrf::VrfRecord), if it has this type.
    pub fn typed<T: Any>(&self) -> Option<&T> {
        match self {
            Record::Typed(record) => record.get(),
            _ => None,
        }
    }

    /// Returns the typed record as the document that a policy's expressions evaluate; null if the record has no typed
    /// form.
    pub fn document(&self) -> serde_json::Value {
        match self {
            Record::Typed(record) => record.as_dyn().document(),
            _ => serde_json::Value::Null,
        }
    }

    /// Adds the facts of the record.
    pub(crate) fn facts(&self, facts: &mut Facts) {
        match self {
            Record::Policy(policy) => facts.put("revision", policy.contents().revision.into()),
            Record::Erasure(erasure) => erasure.facts(facts),
            Record::ClockCorrection(correction) => correction.facts(facts),
            Record::OperatorAction(action) => action.facts(facts),
            Record::OperatorApproval(approval) => approval.facts(facts),
            Record::IndexHead(head) => index_head::facts(head, facts),
            Record::Typed(record) => record.as_dyn().facts(facts),
        }
    }
}

impl ParsedPayload for Record {
    fn payload_json(&self) -> Option<&serde_json::Value> {
        match self {
            Record::Typed(record) => record.as_dyn().payload_json(),
            _ => None,
        }
    }
}

fn read_policy(payload: &[u8]) -> Result<Record, Violation> {
    Policy::from_payload(payload).map(Record::Policy).map_err(|mistakes| Violation {
        rule: RuleName::fixed("policy-payload"),
        place: Place::payload(""),
        detail: mistakes.brief(),
    })
}
