//! Statements of one agent session and of one chain of verification receipts, which lists show on several pages.

use std::ops::Range;

use scitt::SignedStatement;

use super::issuer::Issuer;
use super::kinds::{AUDIT, NumberedStatement, decision, receipt};
use crate::limits::LISTED_ENTRIES;
use crate::numbers::Numbers;

/// The statements, and the names by which they are found.
pub(crate) struct ListedStatements {
    /// The session of the first [`LISTED_ENTRIES`] statements.
    pub(crate) session: String,
    /// The issuer of the chain.
    pub(crate) verifier: String,
    /// The agent that the receipts of the chain are about.
    pub(crate) agent: String,
    /// The records of the session, then the receipts of the chain in its order.
    pub(crate) statements: Vec<SignedStatement>,
}

impl ListedStatements {
    /// Signs the statements of a session and a chain that no log has.
    pub(crate) fn sign(numbers: &Numbers) -> anyhow::Result<Self> {
        let issuer = Issuer::new()?;
        let receipts = numbers.take(LISTED_ENTRIES);
        let session = format!("bench-{}", receipts.start);
        let agent = format!("did:web:agent-{}.bench.example", receipts.start);
        let mut statements = records(&issuer, &session)?;
        statements.extend(chain(&issuer, &agent, receipts)?);
        Ok(Self { session, verifier: issuer.did, agent, statements })
    }
}

/// The audit records of a session: one stream without gaps.
fn records(issuer: &Issuer, session: &str) -> anyhow::Result<Vec<SignedStatement>> {
    let record = |number| NumberedStatement { issuer, content_type: AUDIT, number, bytes: 0 };
    (0..LISTED_ENTRIES).map(|number| decision(&record(number), session)).collect()
}

fn chain(issuer: &Issuer, agent: &str, numbers: Range<u64>) -> anyhow::Result<Vec<SignedStatement>> {
    let mut chain: Vec<SignedStatement> = Vec::new();
    for (position, number) in (0..).zip(numbers) {
        let receipt = receipt(number, agent);
        let placed = match chain.last() {
            Some(previous) => receipt.after(previous.digest(), position),
            None => receipt,
        };
        chain.push(placed.sign(&issuer.key)?);
    }
    Ok(chain)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn two_sets_have_no_statement_and_no_name_in_common() {
        let numbers = Numbers::unused();
        let (first, second) =
            (ListedStatements::sign(&numbers).unwrap(), ListedStatements::sign(&numbers).unwrap());
        assert_ne!((&first.session, &first.agent), (&second.session, &second.agent));
        let statements = first.statements.iter().chain(&second.statements);
        let digests: BTreeSet<_> = statements.map(SignedStatement::digest).collect();
        assert_eq!(digests.len() as u64, 4 * LISTED_ENTRIES);
    }
}
