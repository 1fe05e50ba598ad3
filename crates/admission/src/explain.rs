//! Explanations of the reason codes: what each means, and what the reader can do about it.
//!
//! The texts are fixed: none contains text of the message, of the rules or of the judge's answer (reading V-27).

use vap::reason::Reason;

/// A [`Reason`] explained for a human reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The event: why the message or the call was not simply served.
    pub what: &'static str,
    /// The recommended action.
    pub remedy: &'static str,
}

/// Returns the fixed English explanation of a reason.
#[must_use]
#[rustfmt::skip]
pub const fn explain(reason: &Reason) -> Explanation {
    let (what, remedy) = match reason {
        Reason::Malformed => ("The VAP message does not follow its schema, or is not strict JSON.", "Send the members of the schema and no others; no object has a member twice."),
        Reason::UnsupportedVersion => ("The message says another version of VAP.", "Send \"vap\": \"0.1\"."),
        Reason::WrongCarrier => ("A message of this type does not ride on this request.", "Commitments go on initialize, server/discover or tools/list; amendments on tools/list, ping or vap/amend; envelopes on tools/call."),
        Reason::TwoMessages => ("One request carries more than one message.", "Send one message, in one shape; under both keys only if both are equal."),
        Reason::ReservedSessionId => ("The session id is one that means something else here.", "Choose a session id other than \"none\" that does not begin with \"unbound:\"."),
        Reason::OutOfRange => ("There are more patterns, meters or digits than are kept, or a meter is named like one of the gateway's own.", "Declare fewer, and no meter that begins with \"vap.\"."),
        Reason::NoBudget => ("The budget bounds nothing.", "Give max_calls, a deadline, or a limit of at least one meter."),
        Reason::MalformedDeadline => ("The deadline is not a time of RFC 3339 with an offset.", "Write it as 2026-01-31T23:59:59Z."),
        Reason::ToolChanged => ("The server's description of this tool has changed since it was pinned.", "The operator reviews the change and approves it: tabellion gateway tools list, then approve."),
        Reason::ToolNotApproved => ("Only tools that the operator approved may be called on this route, and this one is not among them as it is.", "The operator looks at it and approves it: tabellion gateway tools list, then approve."),
        Reason::ToolSchemaUnusable => ("The arguments cannot be checked: the tool's inputSchema is too long, too costly, refers to something outside, or is not JSON Schema.", "The server mends its schema, or the operator sets check_arguments = false on the route."),
        Reason::ArgumentsInvalid => ("The arguments do not fit the tool's inputSchema.", "Call with arguments that fit the schema in tools/list."),
        Reason::RoaNotEnforced => ("The call carries an AgentROA envelope, and this route does not enforce AgentROA: it would run as if it had none.", "Call without the envelope, or a route that enforces it."),
        Reason::NoEnvelope => ("The tool call carries no Intent Envelope, and this route demands one, or a session of the same principal is live.", "Commit to a scope, and send an envelope with each call."),
        Reason::NoCommitment => ("No accepted commitment has this session id on this route.", "Send a Scope Commitment first, and see that its verdict is served or downgraded."),
        Reason::NoPrincipal => ("Nothing says whose session this would be; where all sessions of a principal are bounded together, an MCP session does not.", "Present an access token, a certificate or a signature."),
        Reason::WrongPrincipal => ("The session belongs to another principal, or to another MCP session.", "Commit to a session of your own."),
        Reason::SessionInUse => ("The session id is in use: the first commitment wins.", "Choose a new session id, or widen the session with an amendment."),
        Reason::SessionClosed => ("The session has ended, and its id is not used again.", "Commit to a new session id."),
        Reason::PrincipalCeiling => ("The sessions of this principal together have used its limit, which the operator sets.", "Wait for the next period, or ask the operator."),
        Reason::CallMismatch => ("The call that was declared is not the call that would run.", "Declare exactly the tool and the arguments that are called."),
        Reason::ScopeEscape => ("The tool is outside the committed scope.", "Widen the scope with an amendment; tools that are denied stay denied."),
        Reason::BudgetExceeded => ("The call would exceed the number of calls or a meter's ceiling.", "Raise the budget with an amendment."),
        Reason::MeterOverrun => ("A meter is over its ceiling: a call cost more than was left.", "Raise the meter with an amendment."),
        Reason::CostUnknown => ("The cost of the tool is not known, and the session has limits.", "The operator can configure the tool's cost."),
        Reason::DeadlinePassed => ("The deadline has passed.", "Commit to a new session; a deadline is extended before it passes."),
        Reason::ChainBroken => ("The amendment does not follow the commitment in force.", "Name the digest of the newest commitment, as its verdict gave it."),
        Reason::NothingToAdd => ("The amendment adds nothing.", "Add patterns or budget."),
        Reason::NoSuchLimit => ("The amendment raises something that has no ceiling.", "A new ceiling needs a new commitment."),
        Reason::DeadlineNotLater => ("The new deadline is not later than the old one.", "Name a later time."),
        Reason::NotCanonical => ("The message is signed, and holds a number that no double holds.", "Send such numbers as text, or unsigned."),
        Reason::SignatureRequired => ("A signature is required here.", "Sign the message; the route's posture lists the messages to sign."),
        Reason::InvalidSignature => ("The signature does not verify, or its header has a value that the profile does not allow.", "Sign the canonical message without its signature, with alg and kid in the protected header."),
        Reason::UnknownKey => ("The key of the signature, or of the session's commitment, is not configured here.", "Sign with a key that the operator lists for the agent."),
        Reason::KeyNotAuthorised => ("The key belongs to another agent.", "Sign with a key of the agent that the commitment names."),
        Reason::KeyNotValidNow => ("The key of the signature, or of the session's commitment, is not valid at this time.", "Sign with a current key."),
        Reason::TokenNotOfAgent => ("The access token is not one of the agent that the commitment names.", "Present the agent's own token, or name the agent that the token belongs to."),
        Reason::FreshnessRequired => ("The route demands iat, jti and aud in the signature's header.", "Add all three."),
        Reason::WrongAudience => ("The message was signed for another recipient.", "Sign with this gateway's issuer in aud."),
        Reason::Stale => ("The message was signed too long ago, or in the future.", "Sign when sending, with a clock that is right within a minute."),
        Reason::Replayed => ("A message with this jti was seen before in the session.", "Use each jti once."),
        Reason::Ceiling => ("The operator's ceiling reduced the requested scope, or added restrictions.", "See downgrade.applied_scope for the scope in force."),
        Reason::Restricted => ("Calls without VAP are restricted to some tools on this route.", "Commit to a scope to call others."),
        Reason::RateLimited => ("Too many calls were denied within a minute.", "Wait a minute, and correct the denied calls."),
        Reason::EvidenceBackpressure => ("The gateway cannot store more evidence: its disk is full, or too many records wait for the log.", "Try again later; the operator sees an alarm."),
        Reason::EvidenceUnavailable => ("The decision could not be made durable.", "Try again later; the operator sees an alarm."),
        Reason::ReceiptUnavailable => ("The route requires a receipt of the log before a call is forwarded, and there was none in time.", "Try again later; the operator sees an alarm."),
        Reason::PolicyFailed => ("A rule of the operator could not be evaluated for this call.", "The operator mends the rule; gateway explain shows which."),
        Reason::Inconsistent => ("The judge finds the message inconsistent with the session's goal.", "Say why the call serves the goal, or commit to another goal."),
        Reason::JudgeUnavailable => ("The judge did not answer, or made no sense.", "Try again later."),
        Reason::JudgeBudget => ("The judge's own meter is spent for this session.", "Commit to a new session, or ask the operator."),
        Reason::ConfirmationRequired => ("A human has to confirm this, and cannot be asked here.", "Use a client that can ask its user (elicitation)."),
        Reason::Declined => ("The human declined.", "Do not ask again for the same call."),
        Reason::ApprovalRequired => ("An approver outside of the client has to sign this first.", "Send the same message again: it counts once it is approved."),
        Reason::ApprovalDenied => ("An approver outside of the client denied it.", "Do not ask again for the same; ask the operator who decided."),
        Reason::ApprovalUnavailable => ("No approver can be asked about this: none may answer it, too many questions are open, its text is too long to be shown, or the request cannot wait.", "The operator lists approvers; wait for the questions that are open."),
        Reason::InvalidApproval => ("The approval is not signed by an approver who may give it now, or it is about something else.", "Call again, to be asked again; the operator sees who answered."),
        Reason::Unanswered => ("The question was not answered in time.", "Call again, to be asked again."),
        Reason::InvalidState => ("The answer came with a state that is not ours, not for this call, expired or used.", "Call again without it, to be asked again."),
        Reason::CarrierFailed => ("The request that carried the message failed, so the message is void.", "Send the message again with a request that succeeds."),
        Reason::Roa(_) => ("The delegation chain of the call (AgentROA) does not authorize it for this caller.", "The execution receipt in dev.tabellion/aer, if the answer has one, names the reason, the hop and the dimension: see tabellion help roa."),
        Reason::Policy(_) => ("A rule of the operator denied the call, or wants it confirmed.", "The rule's name is in the reason; ask the operator."),
    };
    Explanation { what, remedy }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_says_something_of_its_own() {
        let explanations: BTreeSet<_> = Reason::ALL.iter().map(|reason| explain(reason).what).collect();
        assert_eq!(explanations.len(), Reason::ALL.len());
    }
}
