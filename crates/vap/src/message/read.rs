//! The parsers of the three messages, with the members in the order of their schemas.

use super::members::{Members, malformed};
use super::{
    AddScope, Budget, ClaimedPrincipal, DeclaredCall, Flaw, IncreaseBudget, Intent, IntentEnvelope, Message,
    MessageType, NO_SESSION, Scope, ScopeAmendment, ScopeCommitment, Sensitivity, UNBOUND, VERSION,
};
use crate::limits::{MAX_GOAL, MAX_NAME, MAX_PATTERNS, MAX_RATIONALE, MAX_REFERENCE, MAX_SESSION_ID};
use crate::reason::Reason;

/// Parses a message according to its member `type`.
pub(super) fn message(text: &str) -> Result<Message, Flaw> {
    let mut members = Members::of_message(text)?;
    let kind = kind(&mut members)?;
    let message = match kind {
        MessageType::ScopeCommitment => Message::ScopeCommitment(commitment(&mut members)?),
        MessageType::IntentCall => Message::IntentEnvelope(envelope(&mut members)?),
        MessageType::ScopeAmendment => Message::ScopeAmendment(amendment(&mut members)?),
    };
    members.close()?;
    Ok(message)
}

fn kind(members: &mut Members<'_>) -> Result<MessageType, Flaw> {
    let version = members.text("vap", 0..=MAX_NAME)?;
    if version != VERSION {
        return Err(members.flaw_of("vap", Reason::UnsupportedVersion, "version 0.1 is spoken here"));
    }
    let kind = members.optional_word("type", MessageType::from_word)?;
    kind.ok_or_else(|| members.flaw_of("type", Reason::Malformed, "this member is missing"))
}

fn commitment(members: &mut Members<'_>) -> Result<ScopeCommitment, Flaw> {
    Ok(ScopeCommitment {
        session_id: session_id(members)?,
        goal: members.text("goal", 1..=MAX_GOAL)?,
        scope: scope(members.object("scope")?)?,
        budget: budget(members.object("budget")?)?,
        plan_digest: members.optional_digest("plan_digest")?,
        principal: principal(members.object("principal")?)?,
        signature: signature(members)?,
    })
}

/// Takes the `session_id`, which is also the name of the session's record stream.
fn session_id(members: &mut Members<'_>) -> Result<String, Flaw> {
    let id = members.text("session_id", 1..=MAX_SESSION_ID)?;
    match is_reserved(&id) {
        false => Ok(id),
        true => {
            let what = "this name is reserved for the absence of a session";
            Err(members.flaw_of("session_id", Reason::ReservedSessionId, what))
        }
    }
}

/// Returns `true` for ids that stand for "no session" and cannot be chosen.
pub(super) fn is_reserved(id: &str) -> bool {
    id == NO_SESSION || id.starts_with(UNBOUND)
}

fn scope(mut members: Members<'_>) -> Result<Scope, Flaw> {
    let tools_allow = members.optional_patterns("tools_allow")?.filter(|patterns| !patterns.is_empty());
    let missing = || members.flaw_of("tools_allow", Reason::Malformed, "at least one pattern is needed here");
    let tools_allow = tools_allow.ok_or_else(missing)?;
    let tools_deny = members.optional_patterns("tools_deny")?;
    if tools_allow.len() + tools_deny.as_ref().map_or(0, Vec::len) > MAX_PATTERNS {
        return Err(members.flaw(Reason::OutOfRange, "more patterns than are kept"));
    }
    members.close()?;
    Ok(Scope { tools_allow, tools_deny })
}

/// Parses a budget; one that bounds nothing is refused (reading V-10).
fn budget(mut members: Members<'_>) -> Result<Budget, Flaw> {
    let budget = Budget {
        max_calls: members.optional_integer("max_calls", 1)?,
        deadline: members.optional_deadline("deadline")?,
        limits: members.optional_meters("limits", Reason::NoBudget)?.unwrap_or_default(),
    };
    if budget.is_empty() {
        return Err(members.flaw(Reason::NoBudget, "a budget bounds at least one of calls, time and meters"));
    }
    members.close()?;
    Ok(budget)
}

fn principal(mut members: Members<'_>) -> Result<ClaimedPrincipal, Flaw> {
    let principal = ClaimedPrincipal {
        agent_id: members.name("agent_id")?,
        auth: members.optional_text("auth", 0..=MAX_REFERENCE)?,
        delegated_by: members.optional_text("delegated_by", 0..=MAX_REFERENCE)?,
    };
    members.close()?;
    Ok(principal)
}

fn signature(members: &mut Members<'_>) -> Result<Option<String>, Flaw> {
    members.optional_text("signature", 0..=usize::MAX)
}

fn envelope(members: &mut Members<'_>) -> Result<IntentEnvelope, Flaw> {
    Ok(IntentEnvelope {
        session_id: session_id(members)?,
        intent: intent(members.object("intent")?)?,
        call: call(members.object("call")?)?,
        signature: signature(members)?,
    })
}

fn intent(mut members: Members<'_>) -> Result<Intent, Flaw> {
    let intent = Intent {
        rationale: members.text("rationale", 1..=MAX_RATIONALE)?,
        expected_effect: members.text("expected_effect", 1..=MAX_RATIONALE)?,
        step: members.optional_integer("step", 0)?,
        sensitivity: members.optional_word("sensitivity", Sensitivity::from_word)?,
        reasoning_digest: members.optional_digest("reasoning_digest")?,
    };
    members.close()?;
    Ok(intent)
}

fn call(mut members: Members<'_>) -> Result<DeclaredCall, Flaw> {
    let call = DeclaredCall { tool: members.name("tool")?, arguments: members.object_text("arguments")? };
    members.close()?;
    Ok(call)
}

fn amendment(members: &mut Members<'_>) -> Result<ScopeAmendment, Flaw> {
    let amendment = ScopeAmendment {
        session_id: session_id(members)?,
        prev_commitment_digest: members.digest("prev_commitment_digest")?,
        add_scope: members.optional_object("add_scope")?.map(add_scope).transpose()?,
        increase_budget: members.optional_object("increase_budget")?.map(increase_budget).transpose()?,
        reason: members.text("reason", 1..=MAX_GOAL)?,
        new_plan_digest: members.optional_digest("new_plan_digest")?,
        signature: signature(members)?,
    };
    match amendment.add_scope.is_none() && amendment.increase_budget.is_none() {
        true => Err(malformed("", "an amendment adds to the scope or to the budget")),
        false => Ok(amendment),
    }
}

fn add_scope(mut members: Members<'_>) -> Result<AddScope, Flaw> {
    let added = AddScope {
        tools_allow: members.optional_patterns("tools_allow")?.unwrap_or_default(),
        tools_deny: members.optional_patterns("tools_deny")?.unwrap_or_default(),
    };
    members.close()?;
    Ok(added)
}

fn increase_budget(mut members: Members<'_>) -> Result<IncreaseBudget, Flaw> {
    let added = IncreaseBudget {
        add_calls: members.optional_integer("add_calls", 1)?,
        extend_deadline: members.optional_deadline("extend_deadline")?,
        add_limits: members.optional_meters("add_limits", Reason::Malformed)?.unwrap_or_default(),
    };
    if added == IncreaseBudget::default() {
        return Err(members.flaw(Reason::Malformed, "at least one member is needed here"));
    }
    members.close()?;
    Ok(added)
}
