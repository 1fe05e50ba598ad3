//! Verification receipts (VRF, draft-clawbizarre-scitt-vrf-00): signed results of checks on an agent's work.
//!
//! A verifier (`iss`, a did:key unless the policy allows others) states that the checks on an agent's work (`sub`) passed or failed. The draft
//! leaves choices open and contradicts itself in places. This is our interpretation; [`VrfRule`] cites its rows:
//!
//! | # | reading |
//! |---|---|
//! | 1 | `application/vrf+cbor`: one CBOR byte string that contains the canonical JSON. `application/vrf+json`: the JSON alone. Never a CBOR map |
//! | 2 | canonical JSON is RFC 8785; numbers are integers, member names stay within U+0020..U+D7FF; invalid input is never repaired |
//! | 3 | labels -70001 to -70005 as in the draft: numbers below -65536 are for private use |
//! | 4 | CWT claims and kid are required; -70002 = `iss`; kid = `<did>#<did without "did:key:">`. Another `iss` than a did:key only if the policy allows it, with the keys that the policy lists |
//! | 5 | `sub` is the DID or URN of the agent whose work was verified; a payload's `subject` equals it |
//! | 6 | alg -8, or -19 if the policy allows it; Ed25519 only, verified strictly |
//! | 7 | prev_receipt_hash is `sha256:` and the predecessor's entry ID |
//! | 8 | null, or no label, at position 0 only |
//! | 9 | positions count by one from 0 to 2^53 - 1, the range of exact integers in JSON |
//! | 10 | a chain belongs to one issuer and one agent, (`iss`, `sub`); without both chain labels, a receipt is outside of any chain |
//! | 11 | policy `chain`: "off", "linked" or "strict"; a second successor, first receipt or receipt at a position is refused, and its bytes are evidence |
//! | 12 | receipt_id is a lower-case UUID v4, equal to -70003, used once per issuer |
//! | 13 | structural: tier 0 to 3; not structural: tier absent or negative, only if the policy allows it |
//! | 14 | total ≥ passed + failed + errors; details within the counters |
//! | 15 | pass: all passed, at least one; fail: one failed; partial: some of each; error: one errored, or none ran |
//! | 16 | hashes: sha256, sha384 or sha512 in lower-case hex |
//! | 17 | verified_at in UTC with `Z`, at most five minutes ahead of the log |
//! | 18 | task_type and sandbox may have any value of up to 64 characters |
//! | 19 | unknown members are kept |
//! | 20 | vrf_version is "1.0", in header and payload |
//! | 21 | a receipt may be registered by its hash if the policy allows it: the rules about the header apply, those about the payload and the policy's are checked after its disclosure |
//!
//! Not here: reports of refused forks (the service), encryption of undisclosed receipts (22), counts of receipts by
//! agent (23).

mod build;
mod chain;
mod form;
mod headers;
mod members;
mod options;
mod profile;
mod receipt;
mod redacted;
mod rule;

use jose::members::quote;
use scitt::header::Header;
use scitt::{PublicKey, SignedStatement};

pub use build::{BuildVrfError, VrfStatement};
pub use chain::ChainMode;
pub use form::Form;
pub use headers::{Chain, VrfHeaders, VrfIssuer};
pub use options::VrfOptions;
pub use receipt::{Receipt, Results, Verdict};
pub use redacted::VrfRedacted;
pub use rule::VrfRule;

use crate::facts::Facts;
use crate::profile::ProfileRecord;
use crate::violation::Violation;

/// The content type of a receipt in a CBOR byte string.
pub const VRF_CBOR: &str = "application/vrf+cbor";
/// The content type of a receipt in bare JSON.
pub const VRF_JSON: &str = "application/vrf+json";
/// The only version of the format (`vrf_version`).
pub const VERSION: &str = "1.0";

/// A VRF statement that keeps every rule that does not depend on a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct VrfRecord {
    /// The encoding of the receipt in the payload.
    pub form: Form,
    /// The parsed receipt.
    pub receipt: Receipt,
    /// The verifier that signed.
    pub issuer: VrfIssuer,
    /// The position among its issuer's receipts for this agent.
    pub chain: Chain,
    document: serde_json::Value,
}

impl VrfRecord {
    /// Parses a statement's protected header and payload. The signature is not verified here.
    pub fn read(form: Form, header: &Header, payload: &[u8]) -> Result<VrfRecord, Violation> {
        let headers = VrfHeaders::read(header)?;
        let json = form::canonical_json(form.open(payload)?)?;
        let receipt = Receipt::read(&json)?;
        headers.agree_with(&receipt)?;
        Ok(VrfRecord { form, receipt, issuer: headers.issuer, chain: headers.chain, document: json })
    }

    /// Verifies a statement without a policy: its rules, and its signature with the key in its `iss`, a did:key.
    pub fn verify(statement: &SignedStatement, detached: Option<&[u8]>) -> Result<VrfRecord, Violation> {
        let record = VrfRecord::of_statement(statement, detached)?;
        check_signature(statement, detached, &key_of_issuer(statement)?).map(|()| record)
    }

    /// Verifies a statement without a policy: its rules, and its signature with this key, which the caller trusts for its
    /// `iss`.
    pub fn verify_with(
        statement: &SignedStatement,
        detached: Option<&[u8]>,
        key: &PublicKey,
    ) -> Result<VrfRecord, Violation> {
        let record = VrfRecord::of_statement(statement, detached)?;
        check_signature(statement, detached, key).map(|()| record)
    }

    /// Parses a statement without verifying its signature, for callers that know the issuer's key.
    pub fn of_statement(
        statement: &SignedStatement,
        detached: Option<&[u8]>,
    ) -> Result<VrfRecord, Violation> {
        let header = statement.header();
        let form = Form::of_header(header)?;
        let payload = statement.payload().or(detached);
        let payload = payload
            .ok_or_else(|| VrfRule::Form.in_payload("", "the payload is detached and was not sent"))?;
        VrfRecord::read(form, header, payload)
    }

    /// The receipt as JSON, with the members that are not parsed.
    pub fn json(&self) -> &serde_json::Value {
        &self.document
    }

    /// Returns the receipt in canonical JSON (RFC 8785).
    pub fn canonical_json(&self) -> Vec<u8> {
        jose::jcs::canonical(&self.document)
    }
}

impl ProfileRecord for VrfRecord {
    fn facts(&self, facts: &mut Facts) {
        let receipt = &self.receipt;
        facts.text("receipt_id", &receipt.receipt_id);
        facts.text("verdict", receipt.verdict.as_str());
        facts.put("structural", receipt.structural.into());
        facts.put("tier", receipt.tier.into());
        facts.put("verified_at", receipt.verified_at.unix_seconds.into());
        facts.text("output_hash", &receipt.output);
        for (name, text) in [("task_id", &receipt.task_id), ("task_type", &receipt.task_type)] {
            if let Some(text) = text {
                facts.text(name, text);
            }
        }
        self.chain.state(facts);
    }

    fn payload_json(&self) -> Option<&serde_json::Value> {
        Some(&self.document)
    }
}

/// Returns the key in the statement's `iss`, a did:key.
fn key_of_issuer(statement: &SignedStatement) -> Result<PublicKey, Violation> {
    let iss = statement.header().iss().unwrap_or_default();
    PublicKey::from_did_key(iss).map_err(|error| VrfRule::IssuerDidKey.in_header("15/1", error.to_string()))
}

fn check_signature(
    statement: &SignedStatement,
    detached: Option<&[u8]>,
    key: &PublicKey,
) -> Result<(), Violation> {
    statement.verify_with(key, detached).map_err(|error| crate::Untrusted::from(error).violation())
}

/// Returns the `kid` of a did:key: the DID with its only fragment.
pub fn kid_of(did: &str) -> String {
    format!("{did}#{}", did.strip_prefix("did:key:").unwrap_or_default())
}

/// Returns whether a name has the form `did:method:id` or `urn:nid:nss`, as an agent's name has (reading 5).
pub fn is_did_or_urn(name: &str) -> bool {
    let mut parts = name.splitn(3, ':');
    let scheme = parts.next();
    let space = parts.next().unwrap_or_default();
    let rest = parts.next().unwrap_or_default();
    let in_space = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    matches!(scheme, Some("did" | "urn"))
        && !space.is_empty()
        && space.bytes().all(in_space)
        && !rest.is_empty()
        && rest.bytes().all(|byte| byte.is_ascii_graphic())
}

fn unlike(found: &str, needed: &str) -> String {
    format!("found {}, needed {}", quote(found), quote(needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let names: std::collections::HashSet<_> = VrfRule::ALL.iter().map(|rule| rule.name()).collect();
        assert_eq!(names.len(), VrfRule::ALL.len());
        assert!(names.iter().all(|name| name.starts_with("vrf-")));
    }

    #[test]
    fn agents_are_named_by_did_or_urn() {
        for good in ["did:web:agent.example", "did:key:z6Mk", "urn:uuid:0", "urn:x-y:a/b"] {
            assert!(is_did_or_urn(good), "{good}");
        }
        for bad in [
            "",
            "did:",
            "did:web:",
            "did::x",
            "urn:uuid",
            "https://agent.example",
            "agent",
            "did:web:a b",
            "DID:web:a",
        ] {
            assert!(!is_did_or_urn(bad), "{bad}");
        }
    }
}
