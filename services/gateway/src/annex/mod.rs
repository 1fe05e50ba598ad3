//! Annexes: the data that the store keeps in clear next to a record. The decision writer writes them; recovery and
//! replays read them.
//!
//! Callers choose the length of their texts, so an annex bounds how much of each is kept ([`Text`]).
//!
//! Not here: what a record commits to (`admission::record`); the commitment covers the whole text, even if the annex is
//! cut.

mod inputs;
mod text;

use std::collections::BTreeMap;

use admission::decide::{Flag, Ruling, Settled, Stream};
use admission::invocation::AiInvocation;
use admission::session::ReservationId;
use bytes::Bytes;
use evidence::StoredRecord;
use jose::json::JsonError;
use merkle::EntryDigest;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use vap::digest::Canon;
use vap::reason::Reason;

pub use inputs::{ApproverQuestionInputs, DecisionInputs, JudgeOpinion};
pub use text::{NotWhole, Text, whole};

use crate::authority::UsedEnvelope;
use crate::limits::{ANNEX_PERMITTED_TEXT_BYTES, ANNEX_TEXT_BYTES, ANNEX_UNIDENTIFIED_TEXT_BYTES};

/// The annex of a record that has nothing to keep in clear.
pub const EMPTY: Bytes = Bytes::from_static(b"{}");

/// The annex of a decision: the texts of the message, the client's description of itself (S-4), and the inputs of the
/// decision.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionAnnex {
    session_id: Option<Text>,
    goal: Option<Text>,
    rationale: Option<Text>,
    expected_effect: Option<Text>,
    /// The arguments, in the bytes that the record commits to.
    pub arguments: Option<Text>,
    effective_commitment: Option<Text>,
    principal: Option<Text>,
    req: Option<Text>,
    #[serde(rename = "aiInvocation")]
    ai_invocation: Option<Value>,
    reason: Option<Text>,
    flags: Vec<String>,
    /// The reservation, if the call belongs to a session.
    pub reservation: Option<ReservationId>,
    /// The amounts that the call reserved under its envelope, if its cost was not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<UsedEnvelope>,
    tool: Option<Text>,
    /// The inputs of the decision.
    #[serde(rename = "replay")]
    pub inputs: Option<RecordedInputs>,
}

/// The inputs of a decision, as recorded.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum RecordedInputs {
    /// The inputs, sufficient to replay the decision.
    Decision(Box<DecisionInputs>),
    /// The denial of a call after its admission: the log issued no receipt for the decision.
    LateDenial {
        /// The entry ID of the decision.
        instead_of: String,
        /// The reason of the denial.
        why: String,
    },
    /// Inputs that cannot be read, since a text in them was cut.
    Partial(Value),
}

/// The amounts that an admitted call reserved, for the recovery to settle.
#[derive(Clone, Debug, Default)]
pub struct Reserved {
    /// The reservation in the session of the call.
    pub in_session: Option<ReservationId>,
    /// The amounts reserved under the envelope of the call, if its cost was not known.
    pub under_envelope: Option<UsedEnvelope>,
}

/// The annex of an outcome.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OutcomeAnnex {
    /// The entry ID of the decision.
    decision: Option<String>,
    /// The tool's name.
    pub tool: Option<Text>,
    reservation: Option<ReservationId>,
    /// The cost that the tool declared, as written.
    pub cost: Option<Text>,
    result: Option<Text>,
    flags: Vec<String>,
}

impl DecisionAnnex {
    /// The annex of a ruling's record.
    pub fn new(
        ruling: &Ruling,
        reserved: Reserved,
        invocation: Option<&AiInvocation>,
        inputs: RecordedInputs,
    ) -> Self {
        let text = |text: &Option<String>| text.clone().map(Text::Whole);
        let lossy = |bytes: &Option<Vec<u8>>| {
            Some(Text::Whole(String::from_utf8_lossy(bytes.as_ref()?).into_owned()))
        };
        let texts = &ruling.texts;
        Self {
            session_id: Some(Text::whole(&ruling.verdict.session_id)),
            goal: text(&texts.goal),
            rationale: text(&texts.rationale),
            expected_effect: text(&texts.expected_effect),
            arguments: lossy(&texts.arguments),
            effective_commitment: lossy(&texts.effective_commitment),
            principal: lossy(&texts.principal),
            req: ruling.req.as_ref().map(|req| Text::whole(req.as_str())),
            ai_invocation: invocation.map(|invocation| invocation.assertion().clone()),
            reason: ruling.reason.as_ref().map(|reason| Text::Whole(reason.to_string())),
            flags: names(&ruling.flags),
            reservation: reserved.in_session,
            envelope: reserved.under_envelope,
            tool: text(&ruling.tool),
            inputs: Some(inputs),
        }
    }

    /// Serializes the annex of this ruling, with long texts cut to the bound for the ruling.
    pub fn into_bytes(mut self, ruling: &Ruling) -> Bytes {
        // V-11: a caller that is denied for its rate must not fill the disk, so none of its texts is kept.
        if ruling.reason == Some(Reason::RateLimited) {
            self.drop_texts();
        }
        text::serialize(&self, most(ruling))
    }

    /// Parses the annex of a decision's record.
    pub fn read(stored: &StoredRecord) -> Result<Self, JsonError> {
        jose::json::read_bytes(&stored.record.annex)
    }

    /// Returns the texts that the record commits to, by member, in the canonical form that the commitment covers.
    pub fn committed(&self) -> BTreeMap<&'static str, Text> {
        let words = |text: &Option<Text>| text.as_ref().map(Text::canonical);
        let members = [
            ("goal", words(&self.goal)),
            ("rationale", words(&self.rationale)),
            ("expected_effect", words(&self.expected_effect)),
            ("arguments", self.arguments.clone()),
            ("effective_commitment", self.effective_commitment.clone()),
            ("principal", self.principal.clone()),
            ("ai_invocation", self.ai_invocation.as_ref().map(text::invocation)),
        ];
        members.into_iter().filter_map(|(member, text)| Some((member, text?))).collect()
    }

    /// Drops the texts of arbitrary length: the caller's and the judge's.
    fn drop_texts(&mut self) {
        if let Some(invocation) = &mut self.ai_invocation {
            *invocation = json!(Text::dropped());
        }
        let mut texts = vec![
            &mut self.goal,
            &mut self.rationale,
            &mut self.expected_effect,
            &mut self.arguments,
            &mut self.effective_commitment,
            &mut self.req,
        ];
        if let Some(RecordedInputs::Decision(inputs)) = &mut self.inputs {
            let DecisionInputs { message, header, arguments, judge, .. } = &mut **inputs;
            texts.extend([message, header, arguments]);
            judge.iter_mut().for_each(|judge| judge.words = Text::dropped());
        }
        texts.into_iter().flatten().for_each(|text| *text = Text::dropped());
    }
}

/// Returns the number of bytes that are kept of each text of a ruling.
fn most(ruling: &Ruling) -> usize {
    match (ruling.verdict.verdict.is_permit(), &ruling.stream) {
        // Later decisions depend on these texts.
        (true, Stream::Session(_)) => ANNEX_PERMITTED_TEXT_BYTES,
        (false, _) if ruling.texts.principal.is_none() => ANNEX_UNIDENTIFIED_TEXT_BYTES,
        _ => ANNEX_TEXT_BYTES,
    }
}

impl RecordedInputs {
    /// Returns the path of the route, if it is recorded.
    pub fn route(&self) -> Option<&str> {
        match self {
            Self::Decision(inputs) => Some(&inputs.route),
            Self::LateDenial { .. } => None,
            Self::Partial(value) => value["route"].as_str(),
        }
    }

    /// Returns the name of the called tool, if it is recorded whole.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Decision(inputs) => whole(inputs.tool.as_ref()).ok().flatten(),
            Self::LateDenial { .. } => None,
            Self::Partial(value) => value["tool"].as_str(),
        }
    }
}

impl From<DecisionInputs> for RecordedInputs {
    fn from(inputs: DecisionInputs) -> Self {
        Self::Decision(Box::new(inputs))
    }
}

impl<'de> Deserialize<'de> for RecordedInputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if let (Some(instead_of), Some(why)) = (value["instead_of"].as_str(), value["why"].as_str()) {
            return Ok(Self::LateDenial { instead_of: instead_of.to_owned(), why: why.to_owned() });
        }
        Ok(DecisionInputs::deserialize(&value).map_or(Self::Partial(value), Self::from))
    }
}

impl OutcomeAnnex {
    /// The annex of the outcome of a call.
    pub fn new(
        decision: EntryDigest,
        tool: &str,
        reservation: Option<ReservationId>,
        cost: Option<&str>,
        result: Option<&Canon>,
        settled: &Settled,
    ) -> Self {
        Self {
            decision: Some(decision.to_string()),
            tool: Some(Text::whole(tool)),
            reservation,
            cost: cost.map(Text::whole),
            result: result.map(|result| Text::bounded(&result.bytes, ANNEX_TEXT_BYTES)),
            flags: names(&settled.flags),
        }
    }

    /// Returns the texts that the record commits to, by member.
    pub fn committed(&self) -> BTreeMap<&'static str, Text> {
        self.result.iter().map(|result| ("result", result.clone())).collect()
    }

    /// Serializes the annex, with long texts cut.
    pub fn to_bytes(&self) -> Bytes {
        text::serialize(self, ANNEX_TEXT_BYTES)
    }

    /// Parses the annex of an outcome's record.
    pub fn read(stored: &StoredRecord) -> Result<Self, JsonError> {
        jose::json::read_bytes(&stored.record.annex)
    }
}

fn names(flags: &[Flag]) -> Vec<String> {
    flags.iter().map(|flag| flag.as_str().to_owned()).collect()
}
