//! Registration policies: what an operator types, what runs, and what the log carries.
//!
//! RFC 9943, section 5.1.1, wants policies and trust anchors transparent: so a policy is data, and the same data
//! three times. [`Policy::from_toml`] reads the operator's file and reports every mistake at once;
//! [`Policy::payload`] is its canonical JSON, the payload of an `application/vnd.tabellion.policy+json` statement;
//! [`Policy::from_payload`] gets the policy back out of the log. Equal digests mean equal policies.
//!
//! Not here: applying it (`authenticate`, `decide`), the statement around it (`statement`), quotas and tokens,
//! which open doors but decide nothing.

mod condition;
mod model;
pub(crate) mod payload;
mod profile;
pub(crate) mod resolve;
pub(crate) mod section;
pub mod statement;
mod template;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use scitt::header::ContentType;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use condition::{Condition, Outcome};
pub use model::{Anchor, BoundKey, Claim, Contents, Issuer, Pattern, SelfCertified, TypeRule};
pub use profile::Profile;
pub use section::{Mistake, Mistakes};
pub use template::{Identity, Trusted, for_dev, for_init};

use crate::conversation;
use crate::limits::{JSON_DEPTH, MAX_POLICY};

/// The content type of a policy statement.
pub const POLICY_CONTENT_TYPE: &str = "application/vnd.tabellion.policy+json";

/// How a statement becomes a leaf: `SHA-256(0x00 ‖ SHA-256(statement))`. One rule for the life of a log.
pub const LEAF_RULE: &str = "sha256-of-statement";

/// SHA-256 of a policy's canonical JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyDigest([u8; 32]);

impl PolicyDigest {
    /// The digest's bytes.
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

/// A policy that can run, with the bytes that stand for it on the log. Cheap to clone.
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
    /// Reads an operator's file. Every mistake in it is reported, with the path of its key.
    pub fn from_toml(text: &str) -> Result<Policy, Mistakes> {
        let document: toml::Table =
            toml::from_str(text).map_err(|error| Mistakes::one(error.to_string().trim_end()))?;
        let document = serde_json::to_value(document).map_err(|error| Mistakes::one(error.to_string()))?;
        let policy = resolve::resolve(&document).map(Policy::new)?;
        match policy.payload().len() {
            0..=MAX_POLICY => Ok(policy),
            size => Err(Mistakes::one(format!(
                "the policy takes {size} bytes on the log, at most {MAX_POLICY} are read"
            ))),
        }
    }

    /// Reads the payload of a policy statement: canonical JSON, or it is refused.
    pub fn from_payload(payload: &[u8]) -> Result<Policy, Mistakes> {
        let document = canonical_document(payload).map_err(Mistakes::one)?;
        let contents = resolve::resolve(&document)?;
        Ok(Policy::with_payload(contents, payload.to_vec()))
    }

    /// A policy of these contents. They are taken as sound: for anything typed, use [`from_toml`](Policy::from_toml).
    fn new(contents: Contents) -> Policy {
        let payload = payload::payload(&contents);
        Policy::with_payload(contents, payload)
    }

    fn with_payload(contents: Contents, payload: Vec<u8>) -> Policy {
        let digest = PolicyDigest(Sha256::digest(&payload).into());
        Policy(Arc::new(Inner { contents, payload, digest }))
    }

    /// What it says.
    pub fn contents(&self) -> &Contents {
        &self.0.contents
    }

    /// Its canonical JSON.
    pub fn payload(&self) -> &[u8] {
        &self.0.payload
    }

    /// SHA-256 of its canonical JSON.
    pub fn digest(&self) -> PolicyDigest {
        self.0.digest
    }

    /// The rule for a content type, if any admits it. Media types are compared without regard to case; a rule for a type
    /// without parameters admits it with any, unless there is one for just these.
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

    /// The rule of conversation records, if it takes them as plain JSON.
    fn rule_of_records(&self, name: &str) -> Option<&TypeRule> {
        let takes = |rule: &&TypeRule| matches!(&rule.profile, Profile::Conversation(options) if options.accept_application_json);
        (essence(name) == conversation::JSON).then(|| self.contents().types.iter().find(takes)).flatten()
    }

    /// The largest statement that any rule admits, in bytes: what the edge need not let pass.
    pub fn largest_statement(&self) -> u64 {
        self.contents().types.iter().map(|rule| rule.max_size).max().unwrap_or(0).max(MAX_POLICY as u64)
    }
}

/// A content type as people write it.
pub(crate) fn spell(content_type: &ContentType) -> Cow<'_, str> {
    match content_type {
        ContentType::Text(name) => Cow::Borrowed(name),
        ContentType::Id(id) => Cow::Owned(id.to_string()),
    }
}

/// A media type without its parameters, in lower case: the form in which two are compared.
pub fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a media type is that of policy statements.
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
