//! Chain forks: two verification receipts of one issuer that exclude each other, proven by the issuer's own signatures.
//!
//! The issuer of a verification receipt is a `did:key`, so that its key is in its name and neither a trust file nor the
//! log is needed. The receipts' leaf positions, and whether the log admitted both, are not checked.

use registration::vrf::{Chain, VrfHeaders};
use scitt::{PublicKey, SignedStatement};

/// Reasons for which two statements are not a chain fork.
#[derive(Debug, PartialEq, Eq)]
pub enum NoFork {
    /// They are not verification receipts, or the payload is missing.
    Other(String),
    /// They are valid verification receipts without a conflict, or a signature is invalid.
    Wrong(&'static str),
}

/// Describes the fork: the issuer, the position in the chain, and the agent.
pub fn forked(one: &SignedStatement, other: &SignedStatement) -> Result<String, NoFork> {
    let (first, second) = (ChainLink::read(one)?, ChainLink::read(other)?);
    if one.digest() == other.digest() {
        return Err(NoFork::Wrong("both are the same receipt"));
    }
    if (&first.issuer, &first.agent) != (&second.issuer, &second.agent) {
        return Err(NoFork::Wrong("they are of two issuers, or about two agents"));
    }
    let place = match (first.chain, second.chain) {
        (Chain::Genesis, Chain::Genesis) => "two first receipts".to_owned(),
        (Chain::Link { previous: one, .. }, Chain::Link { previous: other, .. }) if one == other => {
            format!("two successors of {one}")
        }
        (Chain::Link { position: one, .. }, Chain::Link { position: other, .. }) if one == other => {
            format!("two receipts at position {one}")
        }
        _ => return Err(NoFork::Wrong("they do not take one place")),
    };
    Ok(format!("{} signed {place} about {}", first.issuer, first.agent))
}

/// A receipt whose signature verifies with the key in its issuer's `did:key`.
struct ChainLink {
    issuer: String,
    agent: String,
    chain: Chain,
}

impl ChainLink {
    fn read(statement: &SignedStatement) -> Result<Self, NoFork> {
        let other = |why: String| NoFork::Other(why);
        let headers = VrfHeaders::read(statement.header()).map_err(|why| other(why.to_string()))?;
        let issuer = statement.header().iss().unwrap_or_default().to_owned();
        let key = PublicKey::from_did_key(&issuer).map_err(|why| other(why.to_string()))?;
        if statement.is_detached() {
            return Err(other("its payload is not here".into()));
        }
        statement.verify_with(&key, None).map_err(|_| NoFork::Wrong("a signature is not the issuer's"))?;
        Ok(Self { issuer, agent: headers.sub, chain: headers.chain })
    }
}
