//! Registration policies: their mistakes, and what a log under one decides.

use merkle::TreeSize;
use registration::policy::Mistakes;
use registration::{NotPermitted, Policy};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::bytes::ByteString;
use crate::error::CoreError;
use crate::statements::parse;
use crate::trial_log::{Trial, TrialLog};

/// Reads a policy, and lists its mistakes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckPolicy {
    policy: PolicyText,
}

/// Decides about a statement as a log does that has the policy and some entries. This is `tabellion policy test`, with entries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TryPolicy {
    policy: PolicyText,
    statement: ByteString,
    /// The payload of a detached statement.
    payload: Option<ByteString>,
    /// Earlier entries of the log after its policy, which the policy must admit.
    #[serde(default)]
    entries: Vec<TrialEntry>,
    /// Time of the log in Unix seconds. Without it, rules about time are not decided.
    now: Option<u64>,
}

/// An earlier entry: a statement, or an object with it and its detached payload.
#[derive(Debug)]
struct TrialEntry {
    statement: ByteString,
    payload: Option<ByteString>,
}

impl<'de> Deserialize<'de> for TrialEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct WithPayload {
            statement: ByteString,
            payload: ByteString,
        }
        let entry = Value::deserialize(deserializer)?;
        let read = match entry.is_object() {
            true => WithPayload::deserialize(entry)
                .map(|WithPayload { statement, payload }| Self { statement, payload: Some(payload) }),
            false => ByteString::deserialize(entry).map(|statement| Self { statement, payload: None }),
        };
        read.map_err(D::Error::custom)
    }
}

/// A policy: TOML, or the JSON of a policy statement's payload.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct PolicyText(String);

impl PolicyText {
    fn read(&self) -> Result<Policy, Mistakes> {
        match self.0.starts_with('{') {
            true => Policy::from_payload(self.0.as_bytes()),
            false => Policy::from_toml(&self.0),
        }
    }
}

impl CheckPolicy {
    pub(crate) fn check(self) -> Result<Value, CoreError> {
        Ok(match self.policy.read() {
            Ok(policy) => json!({
                "mistakes": [],
                "digest": policy.digest().to_string(),
                "payload": String::from_utf8_lossy(policy.payload()),
            }),
            Err(mistakes) => {
                let mistakes = mistakes.0.iter();
                let mistakes =
                    mistakes.map(|mistake| json!({ "key": mistake.key, "problem": mistake.problem }));
                json!({ "mistakes": mistakes.collect::<Vec<_>>() })
            }
        })
    }
}

impl TryPolicy {
    pub(crate) fn attempt(self) -> Result<Value, CoreError> {
        let policy = self.policy.read().map_err(|mistakes| CoreError::new("policy", mistakes.brief()))?;
        let mut log = TrialLog::new(policy, self.now);
        for (at, TrialEntry { statement, payload }) in self.entries.into_iter().enumerate() {
            let number = at + 1;
            let statement = parse(statement)
                .map_err(|error| CoreError { what: format!("entry {number}: {}", error.what), ..error })?;
            let refused =
                |why| CoreError::new("entry-refused", format!("entry {number} is not admitted: {why}"));
            log.register(&statement, payload.as_ref().map(ByteString::bytes)).map_err(refused)?;
        }
        let statement = parse(self.statement)?;
        Ok(match log.leaf_of(&statement) {
            Some(leaf) => json!({ "outcome": "registered", "leaf": leaf.get(), "asks_the_log": true }),
            None => answer_of(&log.decide(&statement, self.payload.as_ref().map(ByteString::bytes))),
        })
    }
}

fn answer_of(trial: &Trial) -> Value {
    let mut answer = match &trial.decided {
        Ok(permit) => json!({
            "outcome": "admitted",
            "rule": permit.rule().as_str(),
            "not_before": permit.valid().not_before,
            "not_after": permit.valid().not_after,
            "max_entries": permit.largest_tree().map(TreeSize::get),
        }),
        Err(NotPermitted::Refused(refusal)) => json!({
            "outcome": "refused",
            "rule": refusal.violation.rule.as_str(),
            "place": refusal.violation.place.to_string(),
            "detail": refusal.violation.detail,
        }),
        Err(NotPermitted::Undecided(undecided)) => {
            json!({ "outcome": "undecided", "rule": undecided.rule.as_str(), "detail": undecided.why })
        }
    };
    answer["asks_the_log"] = trial.asks_the_log.into();
    answer
}
