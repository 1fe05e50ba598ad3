//! Explanation of a hypothetical call: the decision about it, and the reasons.

use admission::arguments::CallArguments;
use admission::authenticated::Authenticated;
use admission::decide::{Authority, Declaration, EarlierResults, ToolCall};
use admission::principal::{Caller, Era};
use admission::rules::{AuthorityDemand, envelope_text};
use admission::tool::ToolFault;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use vap::message::MessageType;
use vap::message::slot::{self, Carrier, Unreadable};
use vap::verdict::Verification;

use super::ReplayError;
use super::replayed_session::{RecordedRounds, ReplayResult, ReplayedSession};
use super::run::VerdictWords;
use crate::limits::EXPLAINED_RATIONALE;

/// The MCP session of the hypothetical caller.
const MADE_UP_SESSION: &str = "explain";

/// A hypothetical call.
#[derive(Clone, Debug)]
pub struct Hypothesis<'a> {
    /// The path of the route.
    pub route: &'a str,
    /// The session; `None` for a caller without VAP.
    pub session: Option<&'a str>,
    /// The tool's name.
    pub tool: &'a str,
    /// The arguments: the text of a JSON object.
    pub arguments: &'a str,
    /// The Intent Envelope; `None` if one is to be made up.
    pub envelope: Option<&'a str>,
    /// The fault of the tool or of the arguments, according to the tool's pin.
    pub tool_fault: Option<&'a ToolFault>,
    /// The time of the call.
    pub now: Timestamp,
}

/// The explanation of a [`Hypothesis`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// The decision.
    pub decided: VerdictWords,
    /// The decision of the rules, if the posture `advisory` lets the call through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised: Option<VerdictWords>,
    /// The remedy for a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
    /// The checks of the Verdict, in order.
    pub checks: Vec<String>,
    /// `true` if the route requires a delegation chain. None is decided about here: the call is taken as authorized.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub presumes_chain: bool,
    /// The meters after the decision.
    pub meters: Value,
    /// The question that a person would be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The digest of the rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_digest: Option<String>,
}

/// Result of a commitment that begins a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitmentResult {
    /// The id of the new session.
    Session(String),
    /// The denial of the commitment.
    Denied(VerdictWords),
}

/// Begins a session with a commitment.
///
/// # Errors
/// [`ReplayError::Question`] if the commitment cannot be decided, for example on an unknown route.
pub fn begin(
    again: &mut ReplayedSession,
    route: &str,
    commitment: &str,
    now: Timestamp,
) -> Result<CommitmentResult, ReplayError> {
    let caller = caller(route);
    let read = slot::read(Some(commitment), None, Carrier::ToolsList);
    let read = match read {
        Ok(Some(received)) => Ok(again.authenticated(route, received)),
        Ok(None) => return Err(no_route(route)),
        Err(unreadable) => Err(unreadable),
    };
    let rounds = RecordedRounds::new(route, &caller, now);
    let ReplayResult::Ruled(ruling) = commit(again, &rounds, &read) else { return Err(no_route(route)) };
    Ok(match again.session() {
        Some(session) => CommitmentResult::Session(session.agreed.session_id().to_owned()),
        None => {
            let reason = ruling.reason.as_ref().map(ToString::to_string);
            CommitmentResult::Denied(VerdictWords::of(ruling.verdict.verdict.as_str(), reason))
        }
    })
}

/// Decides the call, and explains the decision.
///
/// # Errors
/// [`ReplayError::Question`] if the arguments are not a JSON object, the route is unknown, the call would wait for another,
/// or the session's state is not known.
pub fn explain(again: &mut ReplayedSession, call: &Hypothesis<'_>) -> Result<Explained, ReplayError> {
    if let Some(seq) = again.unknown_after() {
        let why = format!("the state of the session is not known: its record {seq} cannot be decided again");
        return Err(ReplayError::Question(why));
    }
    let checked = jose::json::check_any_numbers(call.arguments)
        .map_err(|error| ReplayError::Question(format!("the arguments are not strict JSON: {error}")))?;
    if !checked.text().trim_start().starts_with('{') {
        return Err(ReplayError::Question("the arguments are an object".to_owned()));
    }
    let caller = again.owner().map_or_else(|| caller(call.route), |(_, caller)| caller.clone());
    let header = (caller.era == Era::Modern).then_some(call.tool);
    let read = envelope(again, call, &caller);
    let arguments = CallArguments::new(call.arguments);
    let rules = again.rules(call.route);
    let presumes_chain = rules.is_some_and(|rules| rules.authority.demand == AuthorityDemand::Required);
    let authority = if presumes_chain { Authority::Permitted } else { Authority::NotRequired };
    let called = ToolCall {
        envelope: read.as_ref().map(|read| read.as_ref().map_err(|unreadable| &**unreadable)),
        tool: call.tool,
        header,
        arguments: &arguments,
        can_ask: true,
        can_wait: true,
        authority: &authority,
        tool_fault: call.tool_fault,
        replayed: false,
        before: EarlierResults::default(),
    };
    match again.call(&RecordedRounds::new(call.route, &caller, call.now), &called, None) {
        ReplayResult::Ruled(ruling) => {
            let reason = ruling.reason.as_ref();
            let Verification { checks, .. } = &ruling.verdict.verification;
            let meters =
                ruling.meters.iter().map(|(meter, amount)| (meter.to_owned(), amount.to_string().into()));
            Ok(Explained {
                decided: VerdictWords::of(ruling.verdict.verdict.as_str(), reason.map(ToString::to_string)),
                advised: ruling.advised.as_ref().map(VerdictWords::advised),
                remedy: reason.map(|reason| admission::explain::explain(reason).remedy),
                checks: checks.clone(),
                presumes_chain,
                meters: Value::Object(meters.collect()),
                question: ruling.pending.as_ref().map(|asked| asked.question.to_string()),
                policy_digest: Some(ruling.policy_digest.clone()),
            })
        }
        ReplayResult::Asks(question) => Ok(Explained {
            decided: VerdictWords::of("clarify", None),
            advised: None,
            remedy: None,
            checks: Vec::new(),
            presumes_chain,
            meters: json!({}),
            question: Some(question),
            policy_digest: None,
        }),
        ReplayResult::Waits => Err(ReplayError::Question(
            "the call would wait for the cost of one that is under way (V-12)".to_owned(),
        )),
        ReplayResult::NoRoute => Err(no_route(call.route)),
    }
}

/// Returns the envelope of the call: the given one, one that is made up for the session, or, for a caller without VAP, one
/// under the operator's commitment.
fn envelope(
    again: &mut ReplayedSession,
    call: &Hypothesis<'_>,
    caller: &Caller,
) -> Option<Result<Authenticated, Box<Unreadable>>> {
    let made_up =
        call.session.map(|session| envelope_text(session, call.tool, call.arguments, EXPLAINED_RATIONALE));
    let Some(text) = call.envelope.or(made_up.as_deref()) else {
        return under_operator(again, call, caller);
    };
    let read = slot::read(Some(text), None, Carrier::ToolsCall).transpose()?;
    Some(read.map(|received| again.authenticated(call.route, received)))
}

/// Begins the operator's session of the caller, and writes the envelope of its call. `None` if the route has no
/// operator's commitment.
fn under_operator(
    again: &mut ReplayedSession,
    call: &Hypothesis<'_>,
    caller: &Caller,
) -> Option<Result<Authenticated, Box<Unreadable>>> {
    let rules = again.rules(call.route)?;
    let session = rules.operator_commitment.as_ref()?.session_of(&rules, caller, call.now);
    commit(again, &RecordedRounds::new(call.route, caller, call.now), &session.commitment());
    Some(session.envelope(call.tool, call.arguments))
}

/// Declares a Scope Commitment.
fn commit(
    again: &mut ReplayedSession,
    rounds: &RecordedRounds<'_>,
    commitment: &Result<Authenticated, Box<Unreadable>>,
) -> ReplayResult {
    let message = commitment.as_ref().map_err(|unreadable| &**unreadable);
    let before = EarlierResults::default();
    let declared = Declaration { message, replayed: false, can_wait: true, before };
    again.declare(MessageType::ScopeCommitment, rounds, &declared)
}

fn no_route(route: &str) -> ReplayError {
    ReplayError::Question(format!("there is no route {route}"))
}

/// A caller of this route with a legacy session and no other identity.
fn caller(route: &str) -> Caller {
    let caller = Caller { route: route.to_owned(), ..Caller::unknown(Era::Legacy) };
    caller.with_issued_session(Some(MADE_UP_SESSION.to_owned()))
}
