//! Operator approvals: an operator agrees to a statement of another operator.

use jose::members::quote;
use merkle::EntryDigest;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::OperatorRule as Rule;
use super::document::{close, digest, number, object, text};
use super::{OPERATOR_APPROVAL_CONTENT_TYPE, is_operator_statement};
use crate::authenticated::Authenticated;
use crate::content_types::essence;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::guard::permanent_guard;
use crate::guard::{Guard, GuardKind};
use crate::limits::MAX_APPROVAL_TIME;
use crate::time_window::{Bound, TimeWindow};
use crate::violation::{Place, RuleName, Violation};

/// A statement to be registered later, as approvals name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The content type in lower case, without parameters.
    pub content_type: String,
    /// The SHA-256 digest of the payload.
    pub payload_sha256: [u8; 32],
    /// The statement's `exp` in Unix seconds: from then on, neither it nor the approval is admitted.
    pub expires: u64,
}

impl Pending {
    /// Describes the statement with this content type, payload and `exp`.
    pub fn of(content_type: &str, payload: &[u8], expires: u64) -> Pending {
        let payload_sha256 = Sha256::digest(payload).into();
        Pending { content_type: essence(content_type), payload_sha256, expires }
    }

    /// The guard of an approval by the operator whose key has this thumbprint.
    pub fn approval_guard(&self, thumbprint: &[u8; 32]) -> Guard {
        let expires = self.expires.to_be_bytes();
        let parts: [&[u8]; 4] = [self.content_type.as_bytes(), &self.payload_sha256, &expires, thumbprint];
        Guard::new(GuardKind::OperatorApproval, &parts)
    }

    /// Formats the payload's digest as `sha-256:` and hexadecimal digits.
    pub fn digest(&self) -> String {
        format!("sha-256:{}", data_encoding::HEXLOWER.encode(&self.payload_sha256))
    }
}

/// An operator approval whose payload keeps every rule. Rules about the header are checked later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval(pub Pending);

impl Approval {
    /// Parses a payload: canonical JSON without unknown members.
    ///
    /// # Errors
    /// The first rule that the payload breaks.
    pub fn from_payload(payload: &[u8]) -> Result<Approval, Violation> {
        let members = object(payload)?;
        close(&members, &["content_type", "payload_sha256", "expires"])?;
        let content_type = text(&members, "content_type")?;
        if !is_operator_statement(content_type)
            || essence(content_type) != content_type
            || content_type == OPERATOR_APPROVAL_CONTENT_TYPE
        {
            let detail = format!("{} is not a content type that needs approvals", quote(content_type));
            return Err(Rule::ContentType.in_payload("/content_type", detail));
        }
        let payload_sha256 = digest(&members, "payload_sha256", Rule::PayloadDigest)?;
        let expires = match number(&members, "expires", Rule::Expires)? {
            0 => {
                return Err(
                    Rule::Expires.in_payload("/expires", "an integer from 1 to 2^53-1 is needed here")
                );
            }
            expires => expires,
        };
        Ok(Approval(Pending { content_type: content_type.to_owned(), payload_sha256, expires }))
    }

    /// Serializes the approval as canonical JSON (RFC 8785).
    pub fn payload(&self) -> Vec<u8> {
        let Pending { content_type, payload_sha256, expires } = &self.0;
        jose::jcs::canonical(&json!({
            "content_type": content_type,
            "payload_sha256": data_encoding::HEXLOWER.encode(payload_sha256),
            "expires": expires,
        }))
    }

    /// Returns the guards of the approval with this statement digest, signed by the key with this thumbprint.
    pub fn guards(&self, statement: &EntryDigest, thumbprint: &[u8; 32]) -> [Guard; 2] {
        [self.0.approval_guard(thumbprint), permanent_guard(statement)]
    }

    /// Checks the rules about the statement's header.
    pub(crate) fn check(
        &self,
        statement: &Authenticated<'_>,
        origin: &str,
    ) -> Result<PermitDemands, Violation> {
        if statement.sub() != origin {
            let detail = "the subject of an operator's approval is the log's origin";
            return Err(Rule::Subject.in_header("15/2", detail));
        }
        let expires = self.0.expires;
        let expiry = Bound {
            rule: RuleName::fixed(Rule::Expires.name()),
            place: Place::payload("/expires"),
            window: TimeWindow {
                not_before: Some(expires.saturating_sub(MAX_APPROVAL_TIME)),
                not_after: Some(expires - 1),
            },
        };
        let guards = self.guards(&statement.digest(), &statement.key().thumbprint()).to_vec();
        Ok(PermitDemands { bounds: vec![expiry], guards, ..PermitDemands::default() })
    }

    pub(crate) fn facts(&self, facts: &mut Facts) {
        facts.text("approves", &self.0.content_type);
        facts.text("payload", &self.0.digest());
        facts.put("expires", self.0.expires.into());
    }
}
