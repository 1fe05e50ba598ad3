//! The rules of content types in the verdict of an offline verification.
//!
//! The crate `verifier` reads no payloads. [`check_statement`] and [`check_bundle`] add to its verdict what a payload shows:
//! whether header and content keep the rules of their type, whether the gateway's keys made the signatures within an
//! execution receipt (AgentROA), and whether unsigned trace-metadata says what the conversation record says.
//! `tabellion verify`, the SDKs and the page `/ui/verify` all verify with these checks.
//!
//! Pure: no I/O, no clock. Not here: the rules themselves (`registration::check_content`), rules about the rest of the log
//! (`tabellion vrf chain`), and the age of a verification (`vrf-evidence`).

mod content;
mod inner_signatures;
mod trace_metadata;

use bundle::{BundleVerdict, EvidenceBundle};
pub use inner_signatures::issuer_key;
use scitt::{PublicKey, SignedStatement};
use verifier::{StatementEvidence, StatementVerdict};

/// Adds the checks to the verdict on a statement. A malformed statement has none.
///
/// `gateway_keys` are keys of the gateway that made an execution receipt; if there are none, the key in the issuer's
/// `did:key` is used.
pub fn check_statement(
    verdict: &mut StatementVerdict,
    evidence: &StatementEvidence<'_>,
    gateway_keys: &[PublicKey],
) {
    let Ok(statement) = SignedStatement::parse(evidence.statement.to_vec()) else { return };
    let payload = evidence.payload;
    let checks = [
        content::check(&statement, payload),
        inner_signatures::check(&statement, payload, gateway_keys),
        trace_metadata::check(&statement, payload),
    ];
    checks.into_iter().flatten().for_each(|check| verdict.add(check));
}

/// Adds the checks to the verdicts on the entries of a bundle, and concludes the bundle's verdict again. Signatures within
/// execution receipts are not verified: a bundle may hold those of several gateways.
pub fn check_bundle(bundle: &EvidenceBundle, verdict: &mut BundleVerdict) {
    for (entry, result) in bundle.entries.iter().zip(&mut verdict.entries) {
        let Ok(statement) = SignedStatement::parse(entry.statement.clone()) else { continue };
        let payload = entry.payload.as_deref();
        let checks = [content::check(&statement, payload), trace_metadata::check(&statement, payload)];
        checks.into_iter().flatten().for_each(|check| result.add(check));
    }
    verdict.conclude();
}
