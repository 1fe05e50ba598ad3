//! Searches of a log's index: the terms under which an entry is found, and answers that prove to be complete.

use registration::SearchValues;
use search_evidence::{AnswerReader, SearchAnswer};
use serde::Deserialize;
use serde_json::{Value, json};
use tlog::policy::{NotAPolicy, WitnessPolicy};
use verifier::{IndexMonitors, TrustStore};

use crate::bytes::ByteString;
use crate::error::CoreError;
use crate::notes::verifier_key;
use crate::statements::parse;

/// Reads the terms under which the index of a log has an entry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadTerms {
    statement: ByteString,
    /// The payload of a detached statement, if the log serves it.
    payload: Option<ByteString>,
}

/// Verifies a file of `tabellion entry search --prove`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifySearch {
    answer: ByteString,
    /// A `trust.toml`.
    trust: String,
    /// A C2SP tlog-policy.
    witness_policy: Option<String>,
    /// Verifier keys of monitors, each of which must have attested the index. Without any, the trust file decides.
    #[serde(default)]
    monitors: Vec<String>,
    /// Attestations in addition to those in the file.
    #[serde(default)]
    attestations: Vec<String>,
    /// Current time in Unix seconds.
    now: u64,
}

impl ReadTerms {
    pub(crate) fn read(self) -> Result<Value, CoreError> {
        let statement = parse(self.statement)?;
        let payload = self.payload.map(|payload| payload.0);
        let values = SearchValues::of_statement(&statement, payload.as_deref());
        let terms = values.lookups.iter().map(|lookup| {
            let (kind, number) = (lookup.kind.name(), lookup.kind.number());
            json!({ "kind": kind, "number": number, "value": lookup.value, "key": lookup.key().to_string() })
        });
        let blind =
            values.blind.iter().map(|code| json!({ "number": *code as u8, "key": code.key().to_string() }));
        Ok(json!({ "terms": terms.collect::<Vec<_>>(), "blind": blind.collect::<Vec<_>>() }))
    }
}

impl VerifySearch {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let answer = SearchAnswer::decode(&self.answer.0)
            .map_err(|error| CoreError::new("malformed-answer", error))?;
        let trust =
            TrustStore::from_toml(&self.trust).map_err(|error| CoreError::new("trust-unusable", error))?;
        let witnesses = self.witness_policy.as_deref().map(witness_policy).transpose()?;
        let verdict = answer.verify(&AnswerReader {
            trust: &trust,
            witnesses: witnesses.as_ref(),
            monitors: required_monitors(&self.monitors)?.as_ref(),
            attestations: &self.attestations,
            now: self.now,
        });
        serde_json::to_value(verdict).map_err(|error| CoreError::new("malformed-request", error))
    }
}

fn witness_policy(text: &str) -> Result<WitnessPolicy, CoreError> {
    text.parse().map_err(|error: NotAPolicy| CoreError::new("witness-policy-unusable", error))
}

fn required_monitors(keys: &[String]) -> Result<Option<IndexMonitors>, CoreError> {
    let keys = keys.iter().map(|key| verifier_key(key)).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(IndexMonitors::all(&keys)).filter(|monitors| monitors.required > 0))
}
