//! Delegation chains as statements, and their profile.

use jose::json;
use jose::members::quote;
use roa::aer::AER_JSON;
use roa::chain::Chain;
use roa::limits::CHAIN;
use roa::text::Sha256Digest;
use scitt::header::Header;
use serde_json::Value;

use super::{ChainRule, NOT_CANONICAL};
use crate::answers::Answers;
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::profile::{HashSetting, Profile, ProfileRecord, TypeProfile, TypedRecord};
use crate::section::Section;
use crate::violation::Violation;

/// The content type of a delegation chain.
pub const AGENTROA_CHAIN: &str = "application/agentroa-chain+json";

/// A delegation chain: a root envelope and the attestations after it. None of its signatures is verified.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainRecord {
    chain: Chain,
    document: Value,
}

impl ChainRecord {
    /// Parses a payload.
    ///
    /// # Errors
    /// [`Violation`] if it is not a chain in its canonical form.
    pub fn read(payload: &[u8]) -> Result<ChainRecord, Violation> {
        let chain = Chain::parse(payload).map_err(|denial| {
            let pointer = denial.hop.map(|hop| format!("/{hop}")).unwrap_or_default();
            ChainRule::Form.in_payload(pointer, denial.detail)
        })?;
        if chain.canonical() != payload {
            return Err(ChainRule::Canonical.in_payload("", NOT_CANONICAL));
        }
        let document = json::parse_strict(payload, CHAIN)
            .map_err(|error| ChainRule::Form.in_payload(error.pointer.clone(), error.to_string()))?;
        Ok(ChainRecord { chain, document })
    }

    /// Returns the chain.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Returns the `chain_digest` that execution receipts name.
    pub fn digest(&self) -> Sha256Digest {
        self.chain.digest()
    }

    /// Checks that `sub` is the digest.
    fn check_subject(&self, header: &Header) -> Result<(), Violation> {
        let sub = header.sub().unwrap_or_default();
        let digest = self.digest();
        match sub == digest.to_string() {
            true => Ok(()),
            false => {
                let detail = format!("found {}, needed the digest {digest}", quote(sub));
                Err(ChainRule::Subject.in_header("15/2", detail))
            }
        }
    }
}

impl ProfileRecord for ChainRecord {
    fn facts(&self, facts: &mut Facts) {
        let root = self.chain.root().document();
        for (name, text) in [
            ("chain_digest", self.digest().to_string().as_str()),
            ("root_envelope", root.envelope_id.as_str()),
            ("session", root.session.session_id.as_str()),
            ("agent", self.chain.holder().as_str()),
            ("policy_digest", &root.policy.policy_digest.to_string()),
        ] {
            facts.text(name, text);
        }
        facts.put("chain_depth", self.chain.hops().len().into());
        facts.put("expires_at", root.expires_at.unix_seconds().into());
    }

    fn payload_json(&self) -> Option<&Value> {
        Some(&self.document)
    }
}

/// The profile of delegation chains. It has no options of its own: the gateways are those of execution receipts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainProfile;

impl Profile for ChainProfile {
    fn name(&self) -> &'static str {
        "agentroa_chain"
    }

    fn content_types(&self) -> &'static [&'static str] {
        &[AGENTROA_CHAIN]
    }

    fn hash_setting(&self) -> HashSetting {
        HashSetting::None
    }

    fn read_options(&self, _section: &mut Section<'_>) -> TypeProfile {
        TypeProfile::new(ChainProfile)
    }

    fn options(&self) -> Option<Value> {
        None
    }

    fn checked_by(&self) -> Option<&'static str> {
        Some(AER_JSON)
    }

    fn read_record(&self, header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation> {
        let record = ChainRecord::read(payload)?;
        record.check_subject(header)?;
        Ok(TypedRecord::new(record))
    }

    /// Refuses the chain: a policy without execution receipts lists no gateways.
    fn check(
        &self,
        statement: &Authenticated<'_>,
        _record: &TypedRecord,
        _log: &Answers,
    ) -> Result<PermitDemands, Violation> {
        Err(unknown_gateway(statement.iss()))
    }
}

/// Refuses a chain of an issuer that is not a gateway of the policy.
pub(crate) fn unknown_gateway(iss: &str) -> Violation {
    let detail = format!("the policy lists no gateway {} for execution receipts", quote(iss));
    ChainRule::Gateway.in_header("15/1", detail)
}
