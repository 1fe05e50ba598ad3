//! The description of an index in the registration policy of its log.

use merkle::Hash;
use registration::policy::{IndexRules, Mistakes, index_table_digest};
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
    /// The terms of statements come from a table that this program does not have.
    #[error("the index is of another table of search terms ({0}) than this program has")]
    OtherTable(Hash),
}

/// The index of a log, as its registration policy describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyIndex {
    /// Issuer, subject, series and keys of the heads.
    pub trusted: TrustedIndex,
    /// SHA-256 of the table that gives the terms of a statement.
    pub table: Hash,
}

impl PolicyIndex {
    /// Reads the payload of a registration policy of the log with this origin. The caller verifies that the log registered
    /// the policy.
    pub fn read(payload: &[u8], origin: &str) -> Result<Self, NoIndexPolicy> {
        let policy = Policy::from_payload(payload).map_err(NoIndexPolicy::Policy)?;
        let contents = policy.contents();
        if *contents.origin != *origin {
            return Err(NoIndexPolicy::OtherLog {
                given: contents.origin.to_string(),
                expected: origin.to_owned(),
            });
        }
        let rules = contents.index.as_ref().ok_or(NoIndexPolicy::NoIndex)?;
        let trusted = TrustedIndex {
            iss: contents.iss.to_string(),
            subject: index_head::subject(&contents.origin),
            series: rules.series(),
            keys: keys(rules),
        };
        Ok(Self { trusted, table: rules.table })
    }

    /// Returns `true` if this program reads the terms of statements as the index does.
    pub fn has_known_table(&self) -> bool {
        self.table == index_table_digest()
    }
}

fn keys(rules: &IndexRules) -> Vec<CoseKey> {
    let key = |bound: &registration::policy::BoundKey| CoseKey {
        kid: Some(bound.kid.clone()),
        ..CoseKey::bare(bound.key.clone())
    };
    rules.keys.iter().map(key).collect()
}
