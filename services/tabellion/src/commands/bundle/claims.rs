//! What a gathered bundle says of itself, unsigned.

use bundle::{BundleClaims, EvidenceBundle};
use scitt::SignedStatement;
use tlog::policy::WitnessPolicy;
use verifier::TrustStore;

use crate::commands::verify::now;
use crate::service::Service;
use crate::show;

/// Returns the claims of a bundle that is gathered now from this service, without keys.
pub fn of(service: &Service) -> BundleClaims {
    let created_at = show::time(now());
    BundleClaims { created_at, log_url: service.client.base().to_string(), ..BundleClaims::default() }
}

/// Adds the keys with which a bundle was verified.
pub fn add_keys(bundle: &mut EvidenceBundle, trust: &TrustStore, witnesses: Option<&WitnessPolicy>) {
    bundle.claims.trust = trust_in(trust, bundle).to_toml();
    bundle.claims.witness_policy = witnesses.map(WitnessPolicy::to_string);
}

/// Returns the anchors of the trust store that concern the statements of the bundle.
fn trust_in(trust: &TrustStore, bundle: &EvidenceBundle) -> TrustStore {
    let origin = bundle.checkpoint.lines().next();
    let statements = bundle.entries.iter().chain(&bundle.policies);
    let statements = statements.filter_map(|entry| SignedStatement::parse(entry.statement.clone()).ok());
    let issuers: Vec<String> =
        statements.filter_map(|statement| statement.header().iss().map(str::to_owned)).collect();
    let mut claimed = trust.clone();
    claimed.logs.retain(|log| log.origin.as_deref() == origin);
    claimed.issuers.retain(|issuer| issuers.contains(&issuer.iss));
    claimed
}
