//! Reason codes of verdicts other than a plain `served`: fixed codes that never contain text of the judge or of the
//! policy (reading V-27).
//!
//! A code is published in the Verdict's `verification.reason` and in the record on the log. So it contains only
//! letters, digits and `_.:+-`, at most [`MAX_CODE`] (64) of them. The module `explain` of the crate `admission` describes
//! each code in words.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::MAX_CODE;
use crate::name::is_code_byte;

/// Prefix of the code of an operator's rule: the rule's name follows.
const POLICY: &str = "policy:";
/// Prefix of the code of a denial by AgentROA: the `denial_reason` follows.
const ROA: &str = "roa:";

macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident = $code:literal,)+) => {
        /// The reason why a message or a call was denied, reduced by the operator's ceiling, or needs a confirmation.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])+ $name,)+
            /// C4: the operator's rule with this name denied the call or asked for a confirmation (`policy:` and the
            /// name).
            Policy(RuleName),
            /// X-4: AgentROA denied the call, with this `denial_reason` (`roa:` and the reason). Hop and dimension are in
            /// the execution receipt.
            Roa(RuleName),
        }

        impl Reason {
            /// All fixed reasons: every variant except `Policy` and `Roa`.
            pub const ALL: &[Reason] = &[$(Reason::$name,)+];

            /// Returns the reason's code, as published in a Verdict's `verification.reason`.
            pub fn as_str(&self) -> Cow<'static, str> {
                match self {
                    $(Reason::$name => Cow::Borrowed($code),)+
                    Reason::Policy(name) => Cow::Owned(format!("{POLICY}{}", name.0)),
                    Reason::Roa(name) => Cow::Owned(format!("{ROA}{}", name.0)),
                }
            }
        }
    };
}

reasons! {
    /// X-2: the message violates its schema, or is not strict JSON.
    Malformed = "malformed",
    /// The message declares a VAP version other than [`VERSION`](crate::message::VERSION).
    UnsupportedVersion = "unsupported_version",
    /// V-6: the JSON-RPC request cannot carry a message of this type (see [`Carrier`](crate::message::slot::Carrier)).
    WrongCarrier = "wrong_carrier",
    /// V-4, V-6: one request carries more than one VAP message.
    TwoMessages = "two_messages",
    /// X-2, X-5: the session id is reserved: `none`, or an id with the prefix `unbound:`.
    ReservedSessionId = "reserved_session_id",
    /// V-8, V-13: the message has more patterns, meters or digits than the gateway keeps.
    OutOfRange = "out_of_range",
    /// V-10: the budget bounds neither calls nor time nor a meter.
    NoBudget = "no_budget",
    /// V-15: the deadline is not an RFC 3339 time with an offset.
    MalformedDeadline = "malformed_deadline",
    /// R-1: the call carries an AgentROA envelope, which this gateway does not enforce.
    RoaNotEnforced = "roa_not_enforced",
    /// The server's description of the tool differs from the pinned one.
    ToolChanged = "tool_changed",
    /// The route requires tools to be approved by an operator, and this version of the tool is not approved.
    ToolNotApproved = "tool_not_approved",
    /// The tool's `inputSchema` cannot be used to check arguments.
    ToolSchemaUnusable = "tool_schema_unusable",
    /// The arguments do not match the tool's `inputSchema`.
    ArgumentsInvalid = "arguments_invalid",
    /// V-33: a `tools/call` request without an Intent Envelope.
    NoEnvelope = "no_envelope",
    /// C1: the session has no accepted commitment.
    NoCommitment = "no_commitment",
    /// V-2: the request identifies no principal that could own the session.
    NoPrincipal = "no_principal",
    /// V-2: the session belongs to another principal.
    WrongPrincipal = "wrong_principal",
    /// V-3: the session id is already in use; the first commitment wins.
    SessionInUse = "session_in_use",
    /// V-2: the session is closed, and its id cannot be used again.
    SessionClosed = "session_closed",
    /// V-3: the principal has used up the operator's ceiling for all its sessions together.
    PrincipalCeiling = "principal_ceiling",
    /// V-7: the call in the envelope differs from the call that would be forwarded.
    CallMismatch = "call_mismatch",
    /// C2: the tool is outside the committed scope.
    ScopeEscape = "scope_escape",
    /// C3: the call would exceed a meter's ceiling or `max_calls`.
    BudgetExceeded = "budget_exceeded",
    /// V-12: a meter is already over its ceiling; only an amendment can raise it.
    MeterOverrun = "meter_overrun",
    /// V-12: the cost of the tool is unknown, and the route is strict or the session has used up its calls of unknown
    /// cost.
    CostUnknown = "cost_unknown",
    /// C3: the deadline has passed.
    DeadlinePassed = "deadline_passed",
    /// V-17: the amendment's `prev_commitment_digest` is not the digest of the commitment in force.
    ChainBroken = "chain_broken",
    /// V-16: the amendment adds neither patterns nor budget.
    NothingToAdd = "nothing_to_add",
    /// V-16: the amendment raises a limit that the session does not have.
    NoSuchLimit = "no_such_limit",
    /// V-15: the amendment's `extend_deadline` is not later than the deadline in force.
    DeadlineNotLater = "deadline_not_later",
    /// V-22: the message is signed and contains a number that a double cannot represent, so it has no canonical form.
    NotCanonical = "not_canonical",
    /// V-19, V-34: the route requires a signature here.
    SignatureRequired = "signature_required",
    /// V-20: the signature does not follow the profile, or does not verify.
    InvalidSignature = "invalid_signature",
    /// V-20: the key of the signature is not in the operator's keyring.
    UnknownKey = "unknown_key",
    /// V-20: the key belongs to another agent.
    KeyNotAuthorised = "key_not_authorised",
    /// V-20: the key is not valid at this time.
    KeyNotValidNow = "key_not_valid_now",
    /// V-20: the access token is not one that the operator assigned to the agent.
    TokenNotOfAgent = "token_not_of_agent",
    /// V-21: the route requires `iat`, `jti` and `aud` in the signature's header.
    FreshnessRequired = "freshness_required",
    /// V-21: the signature's `aud` names another recipient.
    WrongAudience = "wrong_audience",
    /// V-21: the signature's `iat` is too far in the past or in the future.
    Stale = "stale",
    /// V-21: a message with this `jti` was seen before in the session.
    Replayed = "replayed",
    /// V-23: the operator's ceiling reduced the requested scope or budget, or added limits to it.
    Ceiling = "ceiling",
    /// V-33: the call is served in restricted mode, or denied because that mode does not allow the tool.
    Restricted = "restricted",
    /// V-11: the principal had too many denials within a minute.
    RateLimited = "rate_limited",
    /// X-8: the gateway's evidence queue is full.
    EvidenceBackpressure = "evidence_backpressure",
    /// X-8: the evidence could not be stored durably.
    EvidenceUnavailable = "evidence_unavailable",
    /// X-8: the route requires a receipt, and the log returned none in time.
    ReceiptUnavailable = "receipt_unavailable",
    /// C4: an operator's rule could not be evaluated.
    PolicyFailed = "policy_failed",
    /// C5, S2: the judge finds the message inconsistent with the session's goal.
    Inconsistent = "inconsistent",
    /// C5, S2: the judge did not answer, or its answer could not be used.
    JudgeUnavailable = "judge_unavailable",
    /// V-31: the session's meter for the judge is spent.
    JudgeBudget = "judge_budget",
    /// V-26: a human has to confirm the call, and the client cannot ask one.
    ConfirmationRequired = "confirmation_required",
    /// V-26: the human declined or dismissed the question.
    Declined = "declined",
    /// V-26: an approver outside of the client has to sign the message first.
    ApprovalRequired = "approval_required",
    /// V-26: an approver outside of the client denied the message.
    ApprovalDenied = "approval_denied",
    /// V-26: no approver can be asked about the message.
    ApprovalUnavailable = "approval_unavailable",
    /// V-26: the approval is not signed by an approver with the right to give it, or concerns another message.
    InvalidApproval = "invalid_approval",
    /// V-26: the question was not answered in time.
    Unanswered = "unanswered",
    /// V-26: the state returned with the answer is not from this gateway, is for another call, has expired, or was used
    /// before.
    InvalidState = "invalid_state",
    /// X-1: the request that carried the message failed, so the message is void.
    CarrierFailed = "carrier_failed",
}

/// The name of an operator's rule, or another name restricted to the characters of a reason code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleName(String);

impl RuleName {
    /// Accepts a configured name. Returns `None` if it is empty, too long for [`MAX_CODE`] with its prefix, or has a
    /// character that a code may not contain.
    pub fn new(name: &str) -> Option<RuleName> {
        let fits = (1..=MAX_CODE - POLICY.len()).contains(&name.len()) && name.bytes().all(is_code_byte);
        fits.then(|| RuleName(name.to_owned()))
    }

    /// Returns the name without its prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str())
    }
}

/// The error for a text that is not a [`Reason`]'s code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a reason")]
pub struct NoReason(String);

impl FromStr for Reason {
    type Err = NoReason;

    fn from_str(code: &str) -> Result<Reason, NoReason> {
        let known = || Reason::ALL.iter().find(|reason| reason.as_str() == code).cloned();
        let policy = || code.strip_prefix(POLICY).and_then(RuleName::new).map(Reason::Policy);
        let roa = || code.strip_prefix(ROA).and_then(RuleName::new).map(Reason::Roa);
        known().or_else(policy).or_else(roa).ok_or_else(|| NoReason(code.to_owned()))
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.as_str())
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Reason, D::Error> {
        let code = Cow::<str>::deserialize(deserializer)?;
        code.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_is_one_code_that_reads_back() {
        let own = Reason::Policy(RuleName::new("R3.large").unwrap());
        let roa = Reason::Roa(RuleName::new("capability_not_in_scope").unwrap());
        let codes: BTreeSet<_> = Reason::ALL.iter().map(Reason::as_str).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
        for reason in Reason::ALL.iter().chain([&own, &roa]) {
            let code = reason.to_string();
            assert!(code.len() <= MAX_CODE && code.bytes().all(is_code_byte), "{code}");
            assert_eq!(code.parse(), Ok(reason.clone()));
        }
        assert_eq!(own.as_str(), "policy:R3.large");
        assert_eq!(roa.as_str(), "roa:capability_not_in_scope");
    }

    #[test]
    fn a_rule_name_that_could_repeat_what_somebody_said_is_none() {
        for name in ["", "two words", "line\nbreak", "é", &"r".repeat(58)] {
            assert_eq!(RuleName::new(name), None, "{name}");
        }
        assert!(RuleName::new(&"r".repeat(57)).is_some());
        assert!("policy:".parse::<Reason>().is_err() && "served".parse::<Reason>().is_err());
    }
}
