//! Two verification receipts of one issuer that cannot both stand in one chain: the issuer's own signatures show it.
//!
//! The issuer of such a receipt is a `did:key`: its key stands in its name, so that this needs neither a trust file nor the
//! log. Where the two stand, and whether the log took both, is not asked.

use registration::vrf::{Chain, VrfHeaders};
use scitt::{PublicKey, SignedStatement};

/// Why two statements fork no chain.
#[derive(Debug, PartialEq, Eq)]
pub enum NoFork {
    /// They are no such receipts, or nothing can be said without a payload.
    Other(String),
    /// They are, and stand in one chain or in two.
    Wrong(&'static str),
}

/// Who forked which chain, in words.
pub fn forked(one: &SignedStatement, other: &SignedStatement) -> Result<String, NoFork> {
    let (first, second) = (Link::read(one)?, Link::read(other)?);
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

/// A receipt whose signature verifies with the key in its issuer's name.
struct Link {
    issuer: String,
    agent: String,
    chain: Chain,
}

impl Link {
    fn read(statement: &SignedStatement) -> Result<Self, NoFork> {
        let other = |why: String| NoFork::Other(why);
        let headers = VrfHeaders::read(statement.header()).map_err(|why| other(why.to_string()))?;
        let claims = statement.header().claims();
        let issuer = claims.and_then(|claims| claims.iss()).unwrap_or_default().to_owned();
        let key = PublicKey::from_did_key(&issuer).map_err(|why| other(why.to_string()))?;
        if statement.is_detached() {
            return Err(other("its payload is not here".into()));
        }
        statement.verify_with(&key, None).map_err(|_| NoFork::Wrong("a signature is not the issuer's"))?;
        Ok(Self { issuer, agent: headers.sub, chain: headers.chain })
    }
}
