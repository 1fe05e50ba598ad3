//! Why something was not simply served: fixed codes, and never a text of the judge or of the policy (reading V-27).
//!
//! A code goes outward in the Verdict's `verification.reason` and into the record on the log, so it holds only what a code
//! may hold: letters, digits and `_.:+-`, at most 64 of them. What it means in words is told by `explain`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::MAX_CODE;

/// What begins the code of a rule of the operator's.
const POLICY: &str = "policy:";

macro_rules! reasons {
    ($($(#[$doc:meta])+ $name:ident = $code:literal,)+) => {
        /// Why something was denied, reduced, or has to be asked about.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])+ $name,)+
            /// C4: the operator's rule of this name said no, or asked for a confirmation.
            Policy(RuleName),
        }

        impl Reason {
            /// All of them but the operator's own.
            pub const ALL: &[Reason] = &[$(Reason::$name,)+];

            /// The code.
            pub fn as_str(&self) -> Cow<'static, str> {
                match self {
                    $(Reason::$name => Cow::Borrowed($code),)+
                    Reason::Policy(name) => Cow::Owned(format!("{POLICY}{}", name.0)),
                }
            }
        }
    };
}

reasons! {
    /// X-2: the message does not follow its schema, or is no strict JSON.
    Malformed = "malformed",
    /// The message says another version of VAP.
    UnsupportedVersion = "unsupported_version",
    /// V-6: a message of this type does not ride on this request.
    WrongCarrier = "wrong_carrier",
    /// V-4, V-6: more than one message in one request.
    TwoMessages = "two_messages",
    /// X-2, X-5: the session id is one that means something else to us.
    ReservedSessionId = "reserved_session_id",
    /// V-8, V-13: more patterns, meters or digits than we keep.
    OutOfRange = "out_of_range",
    /// V-10: a budget without any effective dimension.
    NoBudget = "no_budget",
    /// V-15: the deadline is no time of RFC 3339 with an offset.
    MalformedDeadline = "malformed_deadline",
    /// R-1: the call carries an AgentROA envelope, and nothing here enforces one.
    RoaNotEnforced = "roa_not_enforced",
    /// The server says something else of the tool than what is pinned.
    ToolChanged = "tool_changed",
    /// The route demands that an operator approves tools, and none approved this one as it is.
    ToolNotApproved = "tool_not_approved",
    /// The schema of the tool's arguments cannot be used.
    ToolSchemaUnusable = "tool_schema_unusable",
    /// The arguments do not fit the schema of the tool.
    ArgumentsInvalid = "arguments_invalid",
    /// V-33: a tool call without an Intent Envelope.
    NoEnvelope = "no_envelope",
    /// C1: the session has no accepted commitment.
    NoCommitment = "no_commitment",
    /// V-2: nothing says whose session this is.
    NoPrincipal = "no_principal",
    /// V-2: somebody else's session.
    WrongPrincipal = "wrong_principal",
    /// V-3: the session id is in use; the first commitment wins.
    SessionInUse = "session_in_use",
    /// V-2: the session has ended, and its id is not used again.
    SessionClosed = "session_closed",
    /// V-3: the principal has used up what the operator gives it across sessions.
    PrincipalCeiling = "principal_ceiling",
    /// V-7: the call that was declared is not the call that would be forwarded.
    CallMismatch = "call_mismatch",
    /// C2: the tool is outside the committed scope.
    ScopeEscape = "scope_escape",
    /// C3: a meter, or the number of calls, would pass its ceiling.
    BudgetExceeded = "budget_exceeded",
    /// V-12: a meter is over its ceiling already, which only an amendment cures.
    MeterOverrun = "meter_overrun",
    /// V-12, strict: nobody knows what the tool costs.
    CostUnknown = "cost_unknown",
    /// C3: the deadline has passed.
    DeadlinePassed = "deadline_passed",
    /// V-17: the amendment does not follow the commitment in force.
    ChainBroken = "chain_broken",
    /// V-16: the amendment adds nothing.
    NothingToAdd = "nothing_to_add",
    /// V-16: only what has a ceiling can be raised.
    NoSuchLimit = "no_such_limit",
    /// V-15: a deadline is extended to a later time.
    DeadlineNotLater = "deadline_not_later",
    /// V-22: a signed message with a number that no double holds.
    NotCanonical = "not_canonical",
    /// V-19, V-34: a signature is required here.
    SignatureRequired = "signature_required",
    /// V-20: the signature is not one of the profile, or does not verify.
    InvalidSignature = "invalid_signature",
    /// V-20: nobody here knows the key.
    UnknownKey = "unknown_key",
    /// V-20: the key is somebody else's.
    KeyNotAuthorised = "key_not_authorised",
    /// V-20: the key is not valid now.
    KeyNotValidNow = "key_not_valid_now",
    /// V-20: the access token is not the one that the operator has given to the agent.
    TokenNotOfAgent = "token_not_of_agent",
    /// V-21: the route demands `iat`, `jti` and `aud`.
    FreshnessRequired = "freshness_required",
    /// V-21: signed for somebody else.
    WrongAudience = "wrong_audience",
    /// V-21: signed too long ago, or in the future.
    Stale = "stale",
    /// V-21: this `jti` was seen before in the session.
    Replayed = "replayed",
    /// V-23: the operator's ceiling reduced what was asked for, or added to it.
    Ceiling = "ceiling",
    /// V-33: served in restricted mode, or not among what that mode serves.
    Restricted = "restricted",
    /// V-11: too many denials.
    RateLimited = "rate_limited",
    /// X-8: no more evidence can be kept.
    EvidenceBackpressure = "evidence_backpressure",
    /// X-8: the evidence could not be made durable.
    EvidenceUnavailable = "evidence_unavailable",
    /// X-8: the route demands a receipt, and the log gave none.
    ReceiptUnavailable = "receipt_unavailable",
    /// C4: a rule of the operator could not be evaluated.
    PolicyFailed = "policy_failed",
    /// C5, S2: the judge finds the message inconsistent with the goal.
    Inconsistent = "inconsistent",
    /// C5, S2: the judge did not answer, or made no sense.
    JudgeUnavailable = "judge_unavailable",
    /// V-31: the judge's own meter is spent.
    JudgeBudget = "judge_budget",
    /// V-26: a human has to confirm, and cannot be asked here.
    ConfirmationRequired = "confirmation_required",
    /// V-26: the human declined, or closed the question.
    Declined = "declined",
    /// V-26: an approver outside of the client has to sign it first.
    ApprovalRequired = "approval_required",
    /// V-26: an approver outside of the client denied it.
    ApprovalDenied = "approval_denied",
    /// V-26: no approver can be asked about it.
    ApprovalUnavailable = "approval_unavailable",
    /// V-26: the approval is not one of an approver who may give it, or not for this.
    InvalidApproval = "invalid_approval",
    /// V-26: the question was not answered in time.
    Unanswered = "unanswered",
    /// V-26: the answer came with a state that is not ours, not for this call, or used.
    InvalidState = "invalid_state",
    /// X-1: the request that carried the message failed, so that the message is void.
    CarrierFailed = "carrier_failed",
}

/// The name of an operator's rule, as a code may hold it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleName(String);

impl RuleName {
    /// The name as it was configured, if it can be part of a code.
    pub fn new(name: &str) -> Option<RuleName> {
        let fits = (1..=MAX_CODE - POLICY.len()).contains(&name.len()) && name.bytes().all(is_code_byte);
        fits.then(|| RuleName(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_code_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.:+-".contains(&byte)
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str())
    }
}

/// A text that is no reason's code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no reason")]
pub struct NoReason(String);

impl FromStr for Reason {
    type Err = NoReason;

    fn from_str(code: &str) -> Result<Reason, NoReason> {
        let known = || Reason::ALL.iter().find(|reason| reason.as_str() == code).cloned();
        let policy = || code.strip_prefix(POLICY).and_then(RuleName::new).map(Reason::Policy);
        known().or_else(policy).ok_or_else(|| NoReason(code.to_owned()))
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
        let codes: BTreeSet<_> = Reason::ALL.iter().map(Reason::as_str).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
        for reason in Reason::ALL.iter().chain([&own]) {
            let code = reason.to_string();
            assert!(code.len() <= MAX_CODE && code.bytes().all(is_code_byte), "{code}");
            assert_eq!(code.parse(), Ok(reason.clone()));
        }
        assert_eq!(own.as_str(), "policy:R3.large");
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
