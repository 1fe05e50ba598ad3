//! A call that nobody has made: what would become of it, and why.

use admission::message::MessageType;
use admission::principal::{Caller, Era};
use admission::tool::ToolFault;
use admission::verdict::Verification;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::AgainError;
use super::replay::Decided;
use super::session::{Again, Called, Now, Said};
use crate::limits::EXPLAINED_RATIONALE;

/// The MCP session of a caller that is made up.
const MADE_UP_SESSION: &str = "explain";

/// A call to be explained.
#[derive(Clone, Debug)]
pub struct Hypothesis<'a> {
    /// On which route.
    pub route: &'a str,
    /// The session; none for a caller without VAP.
    pub session: Option<&'a str>,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments: the text of a JSON object.
    pub arguments: &'a str,
    /// The Intent Envelope; one is made up if none is given.
    pub envelope: Option<&'a str>,
    /// What is wrong with the tool or the arguments, by what is kept of the tool.
    pub tool_fault: Option<&'a ToolFault>,
    /// When.
    pub now: Timestamp,
}

/// What would become of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// The decision.
    pub decided: Decided,
    /// What the rules would decide, of a call that the posture `advisory` lets through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised: Option<Decided>,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
    /// The checks, in order.
    pub checks: Vec<String>,
    /// The meters, as they would stand.
    pub meters: Value,
    /// What a person would be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The digest of the rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_digest: Option<String>,
}

/// What came of a commitment that begins a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Began {
    /// The session.
    Session(String),
    /// There is none.
    Denied(Decided),
}

/// Begins a session with a commitment.
///
/// # Errors
/// If it is nothing that can be decided.
pub fn begin(again: &mut Again, route: &str, commitment: &str, now: Timestamp) -> Result<Began, AgainError> {
    let caller = caller();
    let said = Said::new(route, &caller, now, Some(commitment));
    let Now::Ruled(ruling) = again.declare(MessageType::ScopeCommitment, &said) else {
        return Err(AgainError::Question(format!("there is no route {route}")));
    };
    Ok(match again.session() {
        Some(session) => Began::Session(session.agreed.session_id().to_owned()),
        None => {
            let reason = ruling.reason.as_ref().map(ToString::to_string);
            Began::Denied(Decided::of(ruling.verdict.verdict.as_str(), reason))
        }
    })
}

/// Decides it, and says why.
///
/// # Errors
/// If the arguments are no object, or nothing like it can be decided.
pub fn explain(again: &mut Again, call: &Hypothesis<'_>) -> Result<Explained, AgainError> {
    let arguments: Value = jose::json::parse_text(call.arguments)
        .map_err(|error| AgainError::Question(format!("the arguments are no strict JSON: {error}")))?;
    if !arguments.is_object() {
        return Err(AgainError::Question("the arguments are an object".to_owned()));
    }
    let made_up = call.session.map(|session| envelope(session, call));
    let caller = again.owner().map_or_else(caller, |(_, caller)| caller.clone());
    let header = (caller.era == Era::Modern).then_some(call.tool);
    let message = call.envelope.or(made_up.as_deref());
    let said = Said::new(call.route, &caller, call.now, message);
    let called = Called {
        tool: call.tool,
        arguments: call.arguments,
        header,
        can_ask: true,
        has_roa_envelope: false,
        tool_fault: call.tool_fault,
        state: None,
    };
    match again.call(&said, &called, None) {
        Now::Ruled(ruling) => {
            let reason = ruling.reason.as_ref();
            let Verification { checks, .. } = &ruling.verdict.verification;
            let meters =
                ruling.meters.iter().map(|(meter, amount)| (meter.to_owned(), amount.to_string().into()));
            Ok(Explained {
                decided: Decided::of(ruling.verdict.verdict.as_str(), reason.map(ToString::to_string)),
                advised: ruling.advised.as_ref().map(Decided::advised),
                remedy: reason.map(|reason| admission::explain::explain(reason).remedy),
                checks: checks.clone(),
                meters: Value::Object(meters.collect()),
                question: ruling.pending.as_ref().map(|asked| asked.question.to_string()),
                policy_digest: Some(ruling.policy_digest.clone()),
            })
        }
        Now::Asks(question) => Ok(Explained {
            decided: Decided::of("clarify", None),
            advised: None,
            remedy: None,
            checks: Vec::new(),
            meters: json!({}),
            question: Some(question),
            policy_digest: None,
        }),
        Now::Waits => Err(AgainError::Question(
            "the call would wait for the cost of one that is under way (V-12)".to_owned(),
        )),
        Now::NoRoute => Err(AgainError::Question(format!("there is no route {}", call.route))),
    }
}

/// The smallest envelope that declares the call; unsigned.
fn envelope(session: &str, call: &Hypothesis<'_>) -> String {
    let head = json!({ "session_id": session, "tool": call.tool });
    // The arguments go in as they were typed: numbers keep their digits.
    format!(
        "{{\"vap\":\"0.1\",\"type\":\"intent_call\",\"session_id\":{},\"intent\":{{\"rationale\":\"{EXPLAINED_RATIONALE}\",\
         \"expected_effect\":\"{EXPLAINED_RATIONALE}\"}},\"call\":{{\"tool\":{},\"arguments\":{}}}}}",
        head["session_id"], head["tool"], call.arguments
    )
}

/// Somebody with a legacy session, of whom nothing else is known.
fn caller() -> Caller {
    Caller::unknown(Era::Legacy).given(Some(MADE_UP_SESSION.to_owned()))
}
