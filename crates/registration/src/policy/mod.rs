//! Registration policies: the operator's file, the payload on the log, and the parsed policy.
//!
//! RFC 9943, section 5.1.1, requires transparent policies and trust anchors, so a policy is data, in three forms.
//! [`Policy::from_toml`] parses the operator's file and reports all mistakes together; [`Policy::payload`] is its
//! canonical JSON, the payload of an `application/vnd.tabellion.policy+json` statement; [`Policy::from_payload`] parses
//! the policy from the log. Equal digests mean equal policies.
//!
//! Not here: the decisions under a policy (`authenticate`, `decide`), the policy's statement (`policy_statement`), quotas and
//! tokens, which limit access and have no effect on decisions.

mod claim;
mod condition;
mod index;
pub(crate) mod log_end;
mod model;
mod payload;
mod profile;
mod required;
mod resolve;
mod template;

use std::fmt;
use std::sync::Arc;

use scitt::header::ContentType;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use crate::bound_key::BoundKey;
pub use crate::content_types::{POLICY_CONTENT_TYPE, essence};
pub use crate::pattern::IssuerPattern;
pub use crate::section::{Mistake, Mistakes};
pub use claim::CwtClaim;
pub use condition::{Condition, Outcome};
pub use index::{IndexRules, index_table_digest};
pub use log_end::{LOG_ENDED, LOG_FULL, LogEnd};
pub use model::{Anchor, Contents, Issuer, SelfCertified, TypeRule};
pub use required::Required;
pub use template::{Identity, Trusted, for_dev, for_init};

use crate::content_types;
use crate::limits::{JSON_DEPTH, MAX_POLICY};
use crate::profile::TypeProfile;

/// The name of the leaf rule, `SHA-256(0x00 ‖ SHA-256(statement))`. It never changes during the life of a log.
pub const LEAF_RULE: &str = "sha256-of-statement";

/// The SHA-256 digest of a policy's canonical JSON ([`Policy::payload`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyDigest([u8; 32]);

impl PolicyDigest {
    /// The bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PolicyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for PolicyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A valid policy with its payload on the log. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Policy(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    contents: Contents,
    payload: Vec<u8>,
    digest: PolicyDigest,
}

impl PartialEq for Policy {
    fn eq(&self, other: &Policy) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for Policy {}

impl Policy {
    /// Parses an operator's file. All mistakes are reported, each with the path of its key. A policy whose payload
    /// [`from_payload`](Policy::from_payload) refuses is refused here.
    pub fn from_toml(text: &str) -> Result<Policy, Mistakes> {
        let document: toml::Table =
            toml::from_str(text).map_err(|error| Mistakes::one(error.to_string().trim_end()))?;
        let document = serde_json::to_value(document).map_err(|error| Mistakes::one(error.to_string()))?;
        let policy = resolve::resolve(&document).map(Policy::new)?;
        match policy.payload().len() {
            0..=MAX_POLICY => Policy::from_payload(policy.payload()),
            size => Err(Mistakes::one(format!(
                "the policy takes {size} bytes on the log, at most {MAX_POLICY} are read"
            ))),
        }
    }

    /// Parses the payload of a policy statement, which must be canonical JSON (RFC 8785).
    pub fn from_payload(payload: &[u8]) -> Result<Policy, Mistakes> {
        let document = canonical_document(payload).map_err(Mistakes::one)?;
        let contents = resolve::resolve(&document)?;
        Ok(Policy::with_payload(contents, payload.to_vec()))
    }

    /// Creates a policy of these contents, which must be valid: use [`from_toml`](Policy::from_toml) for user input.
    fn new(contents: Contents) -> Policy {
        let payload = payload::payload(&contents);
        Policy::with_payload(contents, payload)
    }

    fn with_payload(contents: Contents, payload: Vec<u8>) -> Policy {
        let digest = PolicyDigest(Sha256::digest(&payload).into());
        Policy(Arc::new(Inner { contents, payload, digest }))
    }

    /// The parsed contents of the policy.
    pub fn contents(&self) -> &Contents {
        &self.0.contents
    }

    /// The policy's canonical JSON.
    pub fn payload(&self) -> &[u8] {
        &self.0.payload
    }

    /// The SHA-256 digest of [`payload`](Policy::payload).
    pub fn digest(&self) -> PolicyDigest {
        self.0.digest
    }

    /// Returns the rule for a content type; `None` if the policy does not admit it. Media types are compared without
    /// regard to case. A rule for a type without parameters applies to all parameters, unless there is one for exactly
    /// these.
    pub fn rule_for(&self, content_type: &ContentType) -> Option<&TypeRule> {
        match content_type {
            ContentType::Id(_) => {
                self.contents().types.iter().find(|rule| rule.content_type == *content_type)
            }
            ContentType::Text(name) => {
                let named = self.rule_named(name).or_else(|| self.rule_named(&essence(name)));
                named.or_else(|| self.rule_of_records(name))
            }
        }
    }

    fn rule_named(&self, name: &str) -> Option<&TypeRule> {
        let named =
            |rule: &&TypeRule| rule.content_type.as_text().is_some_and(|own| own.eq_ignore_ascii_case(name));
        self.contents().types.iter().find(named)
    }

    /// Returns the profile that checks the records of a rule: its own, or that of the content type that it names
    /// ([`Profile::checked_by`](crate::profile::Profile::checked_by)), if the policy admits that one.
    pub(crate) fn checking_profile<'p>(&'p self, rule: &'p TypeRule) -> &'p TypeProfile {
        let other = rule.profile.as_dyn().checked_by().and_then(|name| self.rule_named(name));
        other.map_or(&rule.profile, |other| &other.profile)
    }

    /// Returns the rule of conversation records for `application/json`, if it admits them (`accept_application_json`).
    fn rule_of_records(&self, name: &str) -> Option<&TypeRule> {
        let takes = |rule: &&TypeRule| rule.profile.as_dyn().accepts_json();
        (essence(name) == content_types::JSON).then(|| self.contents().types.iter().find(takes)).flatten()
    }

    /// The maximum size in bytes of a statement under any rule, at least [`MAX_POLICY`]. The HTTP server may reject
    /// larger ones.
    pub fn largest_statement(&self) -> u64 {
        self.contents().types.iter().map(|rule| rule.max_size).max().unwrap_or(0).max(MAX_POLICY as u64)
    }
}

/// Returns whether a media type is that of policy statements.
pub(crate) fn is_policy(media_type: &str) -> bool {
    essence(media_type) == POLICY_CONTENT_TYPE
}

fn canonical_document(payload: &[u8]) -> Result<Value, String> {
    if payload.len() > MAX_POLICY {
        return Err(format!("a policy of more than {MAX_POLICY} bytes"));
    }
    let limits = jose::json::Limits { depth: JSON_DEPTH, ..jose::json::Limits::default() };
    let document = jose::json::parse_strict(payload, limits).map_err(|error| error.to_string())?;
    match jose::jcs::canonical(&document) == payload {
        true => Ok(document),
        false => Err("the policy is not in canonical JSON (RFC 8785)".to_owned()),
    }
}
