//! Questions to a human (reading V-26), and the binding of an answer to its call.
//!
//! The question is built from the tool's name and arguments, never from the agent's rationale, because the question is
//! about the agent. Only an accepted form with `confirm` = `true` lets a call through. In the modern era the gateway
//! sends its state to the client in sealed form. [`SealedCall`] is the content of that state; a state that differs from the
//! call in any member is not an approval.
//!
//! Not here: the sealing, and the MCP messages (both in the gateway).

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::approval::Question;

use crate::limits::{
    QUESTION_ARGUMENT_CHARACTERS, QUESTION_SECONDS, QUESTION_TOOL_CHARACTERS, UPSTREAM_STATE_SECONDS,
};

/// The JSON Schema of the answer: one required boolean, `confirm`.
pub const SCHEMA: &str = r#"{"properties":{"confirm":{"title":"Allow this call","type":"boolean"}},"required":["confirm"],"type":"object"}"#;

/// A question to a human about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HumanQuestion {
    /// The text of the question.
    pub question: String,
    /// The state that binds the answer to the call.
    pub ticket: SealedCall,
    /// The question for an approver; `None` if the client asks its user.
    pub approver_question: Option<Box<Question>>,
}

/// The answer of a human.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HumanAnswer {
    /// The form was accepted with `confirm` = `true`.
    Confirmed,
    /// The form was declined or cancelled, or `confirm` is not `true`.
    Declined,
    /// No answer arrived in time.
    Unanswered,
}

/// The purpose of a sealed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The gateway's own question to the client's user: a confirmation lets the call through once.
    Question,
    /// A question to an approver: the retry is decided by the approver's answer, which the gateway stores.
    Approval,
    /// A question of the upstream server: the retry with its answer is neither counted nor confirmed again (reading
    /// V-38).
    Upstream,
}

/// The content of a sealed state: the call that an answer is valid for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedCall {
    /// The purpose of the state.
    pub purpose: Purpose,
    /// The name of the route.
    pub route: String,
    /// The session's id, or `none`.
    pub session_id: String,
    /// The principal's key (see [`account_key`](crate::principal::account_key)), or empty.
    pub account: String,
    /// The tool's name.
    pub tool: String,
    /// The digest of the arguments.
    pub arguments: String,
    /// The digest of the rules; empty for a question to an approver, whose answer is judged by the rules in force when
    /// it is used.
    pub policy: String,
    /// The creation time in Unix seconds.
    pub issued: i64,
    /// The expiry in Unix seconds.
    pub expires: i64,
    /// A random value that makes the state single-use; for a question to an approver, the question's id.
    pub nonce: String,
    /// `true` if an approver let the call through before the upstream server asked its question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
}

/// A sealed state that a client returned, opened.
#[derive(Clone, Copy, Debug)]
pub struct ReturnedState<'a> {
    /// The content; `None` if the gateway did not seal it, or it was altered.
    pub ticket: Option<&'a SealedCall>,
    /// `true` if the state was used before.
    pub spent: bool,
    /// The user's answer, for a question of the gateway.
    pub answer: Option<HumanAnswer>,
}

impl SealedCall {
    /// Returns `true` if the returned content is about the same call as this one, has the same purpose, and has not expired.
    /// The creation time, the expiry, the nonce and `approved` are not compared.
    #[must_use]
    pub fn matches(&self, returned: &SealedCall, now: Timestamp) -> bool {
        let SealedCall { purpose, route, session_id, account, tool, arguments, policy, .. } = self;
        now.as_second() < returned.expires
            && *purpose == returned.purpose
            && *route == returned.route
            && *session_id == returned.session_id
            && *account == returned.account
            && *tool == returned.tool
            && *arguments == returned.arguments
            && *policy == returned.policy
    }
}

/// Returns the expiry, in Unix seconds, of a question asked at `now`: [`QUESTION_SECONDS`] for the gateway's own
/// questions. The upstream server limits its questions itself, so [`UPSTREAM_STATE_SECONDS`] is only an upper bound.
#[must_use]
pub fn expiry(purpose: Purpose, now: Timestamp) -> i64 {
    let seconds = match purpose {
        Purpose::Question | Purpose::Approval => QUESTION_SECONDS,
        Purpose::Upstream => UPSTREAM_STATE_SECONDS,
    };
    now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(now).as_second()
}

/// Formats the question about a call.
#[must_use]
pub fn question(tool: &str, arguments: &str) -> String {
    let tool = displayable(tool, QUESTION_TOOL_CHARACTERS);
    let arguments = displayable(arguments, QUESTION_ARGUMENT_CHARACTERS);
    format!("Allow this call? Tool: {tool}. Arguments: {arguments}")
}

/// Makes a text safe to display: characters that hide or reorder text are escaped, and a long text is cut.
fn displayable(text: &str, most: usize) -> String {
    let cut = text.chars().nth(most).is_some();
    let mut displayable = String::new();
    for character in text.chars().take(most) {
        match is_plain(character) {
            true => displayable.push(character),
            false => displayable.extend(character.escape_unicode()),
        }
    }
    if cut {
        displayable.push_str(&format!("… ({} characters in all)", text.chars().count()));
    }
    displayable
}

/// Returns `true` for a visible character: not a control, a direction mark or a zero-width character.
fn is_plain(character: char) -> bool {
    let hides = matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    !character.is_control() && !hides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v_26_a_question_shows_what_would_hide() {
        let text = question("pay\u{202e}yap", "{\"to\":\"a\u{200b}b\"}");
        assert_eq!(text, "Allow this call? Tool: pay\\u{202e}yap. Arguments: {\"to\":\"a\\u{200b}b\"}");
    }

    #[test]
    fn v_26_a_question_that_was_cut_says_so() {
        let text = question("t", &"x".repeat(100_000));
        assert!(text.ends_with("… (100000 characters in all)") && text.len() < 5_000);
    }
}
