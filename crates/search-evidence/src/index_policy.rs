//! The description of an index in the registration policy of its log.

use registration::policy::{IndexRules, Mistakes};
use registration::{Policy, index_head};
use scitt::CoseKey;
use verifier::index::TrustedIndex;

/// Error: a payload that describes no index.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoIndexPolicy {
    /// The payload is not a registration policy.
    #[error("not a registration policy: {0}")]
    Policy(Mistakes),
    /// The policy is that of another log.
    #[error("the policy is for the log {given:?}, not {expected:?}")]
    OtherLog {
        /// The origin in the policy.
        given: String,
        /// The origin of the log.
        expected: String,
    },
    /// The policy has no table `index`.
    #[error("the policy has no search index")]
    NoIndex,
}

/// Reads issuer, subject, series and keys of the heads from the payload of a registration policy of the log with this
/// origin. The caller verifies that the log registered the policy.
pub fn trusted_index(payload: &[u8], origin: &str) -> Result<TrustedIndex, NoIndexPolicy> {
    let policy = Policy::from_payload(payload).map_err(NoIndexPolicy::Policy)?;
    let contents = policy.contents();
    if *contents.origin != *origin {
        return Err(NoIndexPolicy::OtherLog {
            given: contents.origin.to_string(),
            expected: origin.to_owned(),
        });
    }
    let rules = contents.index.as_ref().ok_or(NoIndexPolicy::NoIndex)?;
    Ok(TrustedIndex {
        iss: contents.iss.to_string(),
        subject: index_head::subject(&contents.origin),
        series: rules.series(),
        keys: keys(rules),
    })
}

fn keys(rules: &IndexRules) -> Vec<CoseKey> {
    let key = |bound: &registration::policy::BoundKey| CoseKey {
        kid: Some(bound.kid.clone()),
        ..CoseKey::bare(bound.key.clone())
    };
    rules.keys.iter().map(key).collect()
}
