//! Evidence against the search index of a log, verified with the log's policy and its receipt keys alone.

use std::collections::BTreeSet;

use index_audit::read_keys;
use lookup_tree::TermKey;
use merkle::Hash;
use registration::{POLICY_CONTENT_TYPE, Policy, index_head};
use scitt::{CoseKey, SignedStatement};
use verifier::TrustStore;
use verifier::index::{IndexAccusation, TrustedIndex};

/// The index of a log, as a policy describes it.
pub struct PolicyIndex {
    /// Who signs its heads.
    pub trusted: TrustedIndex,
    /// SHA-256 of the table that gives the terms of a statement.
    pub table: Hash,
}

/// A policy statement with a receipt of the log.
pub struct RegisteredPolicy {
    /// The statement.
    pub statement: Vec<u8>,
    /// The receipt.
    pub receipt: Vec<u8>,
}

impl PolicyIndex {
    /// Reads the index from a policy statement; `None` if the statement is no policy, or its log has no index.
    pub fn read(statement: &SignedStatement) -> Option<Self> {
        let named = statement.header().content_type().and_then(|name| name.as_text());
        let payload = statement.payload().filter(|_| named == Some(POLICY_CONTENT_TYPE))?;
        let policy = Policy::from_payload(payload).ok()?;
        let contents = policy.contents();
        let index = contents.index.as_ref()?;
        let key = |bound: &registration::policy::BoundKey| CoseKey {
            kid: Some(bound.kid.clone()),
            ..CoseKey::bare(bound.key.clone())
        };
        let trusted = TrustedIndex {
            iss: contents.iss.clone(),
            subject: index_head::subject(&contents.origin),
            series: index.series(),
            keys: index.keys.iter().map(key).collect(),
        };
        Some(Self { trusted, table: index.table })
    }
}

impl RegisteredPolicy {
    /// Verifies that the log registered the policy, and reads the index that it describes; `now` is in Unix seconds.
    ///
    /// # Errors
    /// Returns the reason why the policy does not count.
    pub fn verify(&self, trust: &TrustStore, now: u64) -> Result<TrustedIndex, String> {
        let statement = SignedStatement::parse(self.statement.clone()).map_err(|why| why.to_string())?;
        let verdict = verifier::verify_receipt(&statement, &self.receipt, trust, now);
        if !verdict.is_verified() {
            return Err(format!("the receipt of the policy does not verify: {}", verdict.why()));
        }
        let index = PolicyIndex::read(&statement).ok_or("the policy describes no index")?;
        Ok(index.trusted)
    }
}

/// Checks that an accusation shows the log's misbehaviour, at `now` (Unix seconds).
///
/// # Errors
/// Returns the reason why it does not.
pub fn check_accusation(
    accusation: &IndexAccusation,
    policy: &RegisteredPolicy,
    trust: &TrustStore,
    now: u64,
) -> Result<(), String> {
    let index = policy.verify(trust, now)?;
    accusation.check(&index, trust, &keys_of, now).map_err(|why| why.to_string())
}

/// The keys of a statement's terms; `None` if its payload is needed and is not given.
fn keys_of(statement: &SignedStatement, payload: Option<&[u8]>) -> Option<BTreeSet<TermKey>> {
    let has_payload = statement.payload().is_some() || payload.is_some();
    has_payload.then(|| read_keys(statement, payload))
}
