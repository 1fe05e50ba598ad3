//! Outlines of chains: the scope that each hop declares, and whether it narrows the scope before it, for a reader who has the
//! chain alone.
//!
//! Nothing is verified here: signatures, times, revocations and the order of classifications need a registry
//! ([`verify_chain`](crate::verify::verify_chain)). A reader learns what the parties wrote, and where a hop declares more
//! than there was.

use crate::capability::Grant;
use crate::chain::Chain;
use crate::denial::Denial;
use crate::scope::{Classifications, DeclaredScope, Scope};
use crate::text::{AgentId, Text, UtcTime};

/// A hop of a chain, as its object describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlinedHop {
    /// The agent that the scope is given to.
    pub holder: AgentId,
    /// The names of the signers. The signatures are not verified.
    pub signers: Vec<String>,
    /// The time of issue.
    pub issued_at: UtcTime,
    /// The end of the root envelope, and with it of the chain; `None` for a delegation, which has no end of its own.
    pub expires_at: Option<UtcTime>,
    /// The scope that the object declares. A delegation inherits what it omits.
    pub declared: DeclaredScope,
    /// The capabilities of the hop before that this hop does not have.
    pub withheld: Vec<Grant>,
    /// The scope in effect if the hop keeps to the scope before it, or the first dimension on which it declares more. `None`
    /// after a hop that declares more, where no scope is in effect. The classification is the declared one, since only a registry orders
    /// classifications.
    pub scope: Option<Result<Scope, Denial>>,
}

/// Returns the hops of a chain, the root first.
pub fn outline(chain: &Chain) -> Vec<OutlinedHop> {
    let envelope = chain.root().document();
    let declared = envelope.declared_scope();
    let mut hops = vec![OutlinedHop {
        holder: envelope.holder().clone(),
        signers: envelope.signatures.signers(),
        issued_at: envelope.issued_at,
        expires_at: Some(envelope.expires_at),
        scope: Some(scope_of(None, &declared)),
        withheld: Vec::new(),
        declared,
    }];
    for (before, hop) in chain.hops().iter().enumerate() {
        let (attestation, before_it) = (hop.document(), &hops[before]);
        let declared = attestation.declared_scope();
        let withheld = declared.capabilities.beyond(&before_it.declared.capabilities).cloned().collect();
        let scope = match &before_it.scope {
            Some(Ok(scope)) => Some(scope_of(Some(scope), &declared)),
            _ => None,
        };
        hops.push(OutlinedHop {
            holder: attestation.holder().clone(),
            signers: attestation.signatures.signers(),
            issued_at: attestation.issued_at,
            expires_at: None,
            declared,
            withheld,
            scope: scope.map(|scope| scope.map_err(|denial| denial.at_hop(before + 1))),
        });
    }
    hops
}

/// Returns the scope after `before`, or that of a root. Classifications are carried over unchecked.
fn scope_of(before: Option<&Scope>, declared: &DeclaredScope) -> Result<Scope, Denial> {
    let order = Classifications::default();
    let comparable = DeclaredScope { classification: None, ..declared.clone() };
    let scope = match before {
        None => Scope::of_root(&comparable, &order)?,
        Some(before) => before.narrowed(&comparable, &order)?,
    };
    let inherited: Option<Text> = before.and_then(|before| before.classification.clone());
    Ok(Scope { classification: declared.classification.clone().or(inherited), ..scope })
}
