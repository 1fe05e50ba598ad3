//! Explanation of a hypothetical call: the decision about it, and the reasons.

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
    pub decided: Decided,
    /// The decision of the rules, if the posture `advisory` lets the call through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised: Option<Decided>,
    /// The remedy for a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
    /// The checks of the Verdict, in order.
    pub checks: Vec<String>,
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
pub enum Began {
    /// The id of the new session.
    Session(String),
    /// The denial of the commitment.
    Denied(Decided),
}

/// Begins a session with a commitment.
///
/// # Errors
/// [`AgainError::Question`] if the commitment cannot be decided, for example on an unknown route.
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

/// Decides the call, and explains the decision.
///
/// # Errors
/// [`AgainError::Question`] if the arguments are not a JSON object, the route is unknown, or the call would wait for
/// another.
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

/// Builds the smallest Intent Envelope for the call, unsigned.
fn envelope(session: &str, call: &Hypothesis<'_>) -> String {
    let head = json!({ "session_id": session, "tool": call.tool });
    // The arguments are inserted as written, so that numbers keep their digits.
    format!(
        "{{\"vap\":\"0.1\",\"type\":\"intent_call\",\"session_id\":{},\"intent\":{{\"rationale\":\"{EXPLAINED_RATIONALE}\",\
         \"expected_effect\":\"{EXPLAINED_RATIONALE}\"}},\"call\":{{\"tool\":{},\"arguments\":{}}}}}",
        head["session_id"], head["tool"], call.arguments
    )
}

/// A caller with a legacy session and no other identity.
fn caller() -> Caller {
    Caller::unknown(Era::Legacy).given(Some(MADE_UP_SESSION.to_owned()))
}
