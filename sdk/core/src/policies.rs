//! Registration policies: their mistakes, and what a log under one decides.

use registration::policy::Mistakes;
use registration::{NotPermitted, Policy};
use serde::Deserialize;
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
    /// Earlier statements of the log after its policy, which the policy must admit.
    #[serde(default)]
    entries: Vec<ByteString>,
    /// Time of the log in Unix seconds. Without it, rules about time are not decided.
    now: Option<u64>,
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
        for (at, entry) in self.entries.into_iter().enumerate() {
            let statement = parse(entry)?;
            let refused =
                |why| CoreError::new("entry-refused", format!("entry {} is not admitted: {why}", at + 1));
            log.register(&statement).map_err(refused)?;
        }
        let payload = self.payload.map(|payload| payload.0);
        Ok(answer_of(&log.decide(&parse(self.statement)?, payload.as_deref())))
    }
}

fn answer_of(trial: &Trial) -> Value {
    let mut answer = match &trial.decided {
        Ok(permit) => json!({
            "outcome": "admitted",
            "rule": permit.rule().as_str(),
            "not_before": permit.valid().not_before,
            "not_after": permit.valid().not_after,
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
