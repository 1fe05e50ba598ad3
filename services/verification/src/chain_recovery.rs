//! The end of a receipt chain as the log has it, for a service whose database does not know the chain.
//!
//! The log's list is not believed: its last receipt must be a statement of this verifier, at the position that the list
//! claims. A log that hides receipts can make the service sign a second receipt for a position; the log then refuses it,
//! and the chain halts.

use std::collections::BTreeMap;

use client::{Client, ClientError};
use registration::vrf::{Chain, VrfRecord, VrfRedacted};
use scitt::SignedStatement;
use serde::Deserialize;
use serde_json::Value;
use verification_store::ChainEnd;

use crate::limits::CHAIN_PAGES;

/// Problem code by which a Tabellion log answers that it has no such receipt.
const UNKNOWN: &str = "name-unknown";

/// The reason why the end of a chain is not known.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The log does not answer.
    #[error("the log does not say where the chain ends: {0}")]
    Unanswered(#[from] ClientError),
    /// The log's chain has gaps or forks, or its last receipt is not by this verifier.
    #[error("the chain in the log cannot be continued: {0}")]
    Broken(String),
}

/// A page of `GET /v1/issuers/{iss}/chain`.
#[derive(Deserialize)]
struct ChainPage {
    receipts: Vec<ChainItem>,
    gaps: Vec<Value>,
    forks: Vec<Value>,
}

#[derive(Deserialize)]
struct ChainItem {
    entry_id: String,
    position: u64,
}

/// Asks the log for the end of the chain of `issuer` about `subject`.
///
/// # Errors
/// [`RecoveryError`] if it is not known; then nothing may be signed.
pub async fn chain_end(log: &Client, issuer: &str, subject: &str) -> Result<ChainEnd, RecoveryError> {
    let Some((position, entry)) = last_receipt(log, issuer, subject).await? else {
        return Ok(ChainEnd { next: 0, last: None, halted: None });
    };
    let last = entry.parse().map_err(|_| RecoveryError::Broken(format!("{entry:?} is not an entry ID")))?;
    let statement = log.statement(&last).await?;
    check_own(&statement, issuer, subject, position).map_err(RecoveryError::Broken)?;
    Ok(ChainEnd { next: position + 1, last: Some(last), halted: None })
}

/// Returns the position and entry ID of the last receipt; `None` if the log has none.
async fn last_receipt(
    log: &Client,
    issuer: &str,
    subject: &str,
) -> Result<Option<(u64, String)>, RecoveryError> {
    let mut next = Some(format!("v1/issuers/{}/chain?sub={}", encoded(issuer), encoded(subject)));
    let mut receipts = BTreeMap::new();
    for _ in 0..CHAIN_PAGES {
        let Some(path) = next else { return whole(receipts) };
        let (page, more): (ChainPage, _) = match log.page(&path).await {
            Err(ClientError::NotFound(problem)) if problem.get_code() == Some(UNKNOWN) => return Ok(None),
            answer => answer?,
        };
        if !page.gaps.is_empty() || !page.forks.is_empty() {
            return Err(RecoveryError::Broken("it has gaps or forks".into()));
        }
        for item in page.receipts {
            if receipts.insert(item.position, item.entry_id).is_some() {
                return Err(RecoveryError::Broken(format!("it has two receipts at {}", item.position)));
            }
        }
        next = more;
    }
    Err(RecoveryError::Broken(format!("it has more than {CHAIN_PAGES} pages")))
}

/// Returns the last receipt of a chain that has a receipt at each position.
fn whole(mut receipts: BTreeMap<u64, String>) -> Result<Option<(u64, String)>, RecoveryError> {
    let count = receipts.len() as u64;
    match receipts.pop_last() {
        Some((position, _)) if position + 1 != count => {
            Err(RecoveryError::Broken(format!("{count} receipts end at position {position}")))
        }
        last => Ok(last),
    }
}

/// Checks that a statement is this verifier's receipt about the agent, at this position.
fn check_own(statement: &SignedStatement, issuer: &str, subject: &str, position: u64) -> Result<(), String> {
    let chain = match statement.header().hash_envelope() {
        Some(_) => VrfRedacted::verify(statement, None).map(|redacted| redacted.headers.chain),
        None => VrfRecord::verify(statement, None).map(|record| record.chain),
    };
    let found = match chain.map_err(|violation| violation.to_string())? {
        Chain::Genesis => Some(0),
        Chain::Link { position, .. } => Some(position),
        Chain::Unchained => None,
    };
    let header = statement.header();
    let is_own = header.iss() == Some(issuer) && header.sub() == Some(subject);
    match is_own && found == Some(position) {
        true => Ok(()),
        false => Err(format!("entry {} is not its receipt at {position}", statement.digest())),
    }
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_chain_ends_at_its_last_receipt_if_none_is_missing() {
        let chain = |positions: &[u64]| {
            whole(positions.iter().map(|position| (*position, position.to_string())).collect())
        };
        assert_eq!(chain(&[]).unwrap(), None);
        assert_eq!(chain(&[0, 1, 2]).unwrap(), Some((2, "2".to_owned())));
        assert!(matches!(chain(&[1, 2]), Err(RecoveryError::Broken(_))));
        assert!(matches!(chain(&[0, 2]), Err(RecoveryError::Broken(_))));
    }
}
