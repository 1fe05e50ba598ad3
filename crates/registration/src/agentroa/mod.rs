//! What the decisions of an AgentROA gateway rest on, as statements: versions of the Agent Identity Registry
//! (`application/agentroa-registry+json`), policy documents (`application/agentroa-policy+json`), and the delegation chains
//! that execution receipts name (`application/agentroa-chain+json`).
//!
//! A registry version is the signed document of [`roa::registry`]. The policy of the log lists the registries with the
//! keys of their operators, and the guard of epoch and sequence keeps two versions with one number out of the log.
//! A policy document is any JSON object in canonical form: envelopes name its digest. A chain is in canonical form
//! too, and `sub` is its digest, the `chain_digest` of receipts. The gateways that may register receipts may register
//! chains. The log checks the form of a chain only: who may delegate what is in the registry.
//!
//! Not here: deltas of revocations, which the next version contains, and whether a version follows the one before it: a
//! log admits versions in any order, and gateways refuse to go back.

mod chain;
mod options;
mod profile;
mod rule;

use jose::json::{self, JsonErrorKind};
use roa::registry::RegistryDocument;
use roa::signed::Signed;
use serde_json::Value;

pub use chain::{AGENTROA_CHAIN, ChainRecord};
pub(crate) use chain::{ChainProfile, unknown_gateway};
pub use options::{RegistryEntry, RegistryOptions};
pub(crate) use profile::PolicyDocumentProfile;
pub use roa::outline::{OutlinedHop, outline};
pub use rule::{ChainRule, PolicyDocumentRule, RegistryRule};

use crate::limits::JSON_DEPTH;
use crate::violation::Violation;

/// The content type of a registry version.
pub const AGENTROA_REGISTRY: &str = "application/agentroa-registry+json";
/// The content type of a policy document.
pub const AGENTROA_POLICY: &str = "application/agentroa-policy+json";

/// A registry version whose signatures are not verified yet.
#[derive(Clone, Debug, PartialEq)]
pub struct RegistryRecord {
    signed: Signed<RegistryDocument>,
    document: Value,
}

impl RegistryRecord {
    /// Parses a payload.
    pub fn read(payload: &[u8]) -> Result<RegistryRecord, Violation> {
        let document = json::parse_strict(payload, roa::limits::REGISTRY)
            .map_err(|error| RegistryRule::Json.in_payload(error.pointer.clone(), error.to_string()))?;
        if jose::jcs::canonical(&document) != payload {
            return Err(RegistryRule::Canonical.in_payload("", NOT_CANONICAL));
        }
        let signed = Signed::parse(payload).map_err(|error| {
            let detail = match &error.kind {
                JsonErrorKind::Shape(detail) => detail.clone(),
                kind => kind.to_string(),
            };
            RegistryRule::Document.in_payload(error.pointer.clone(), detail)
        })?;
        Ok(RegistryRecord { signed, document })
    }

    /// Returns the signed version.
    pub fn signed(&self) -> &Signed<RegistryDocument> {
        &self.signed
    }
}

/// A policy document.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyDocument {
    digest: String,
    document: Value,
}

impl PolicyDocument {
    /// Parses a payload.
    pub fn read(payload: &[u8]) -> Result<PolicyDocument, Violation> {
        let limits = json::Limits { depth: JSON_DEPTH, ..json::Limits::default() };
        let document = json::parse_strict(payload, limits)
            .map_err(|error| PolicyDocumentRule::Json.in_payload(error.pointer.clone(), error.to_string()))?;
        if !document.is_object() {
            return Err(PolicyDocumentRule::Json.in_payload("", "the payload is not an object"));
        }
        match jose::jcs::canonical(&document) == payload {
            true => Ok(PolicyDocument { digest: roa::text::Sha256Digest::of(payload).to_string(), document }),
            false => Err(PolicyDocumentRule::Canonical.in_payload("", NOT_CANONICAL)),
        }
    }

    /// Returns the `policy_digest` that envelopes name.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

const NOT_CANONICAL: &str = "the JSON is not in its canonical form (RFC 8785)";
