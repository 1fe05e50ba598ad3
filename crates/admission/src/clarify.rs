//! Asking a person (reading V-26): what is asked, and to what an answer is bound.
//!
//! The question is built from the tool's name and its arguments, never from what the agent says about them: a rationale is
//! written by whom the question is about. The one answer that lets a call through is an accepted form whose `confirm` is
//! true. In the modern era the question leaves the gateway in a sealed state: [`Ticket`] is what is sealed, and a state that
//! does not fit the call in every member is no approval.
//!
//! Not here: sealing, and the messages of MCP (the gateway).

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::approval::Question;

use crate::limits::{
    QUESTION_ARGUMENT_CHARACTERS, QUESTION_SECONDS, QUESTION_TOOL_CHARACTERS, UPSTREAM_STATE_SECONDS,
};

/// The schema of the answer: one required boolean.
pub const SCHEMA: &str = r#"{"properties":{"confirm":{"title":"Allow this call","type":"boolean"}},"required":["confirm"],"type":"object"}"#;

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The question, in words.
    pub question: String,
    /// To what the answer is bound.
    pub ticket: Ticket,
    /// The question for an approver; none where the client asks its user.
    pub approval: Option<Box<Question>>,
}

/// What a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Yes: accepted, and `confirm` is true.
    Confirmed,
    /// No: declined, cancelled, or `confirm` is anything else.
    Declined,
    /// Nothing, in time.
    Unanswered,
}

/// What a sealed state is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Our own question: with the answer, the call goes through once.
    Question,
    /// A question to an approver: the retry is decided by its answer, which the gateway keeps.
    Approval,
    /// The upstream's question: its retry is not counted, and not asked about, a second time (reading V-38).
    Upstream,
}

/// What a sealed state is bound to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticket {
    /// What it is for.
    pub purpose: Purpose,
    /// The route.
    pub route: String,
    /// The session, or `none`.
    pub session_id: String,
    /// The principal's key, or nothing.
    pub account: String,
    /// The tool.
    pub tool: String,
    /// The digest of the arguments.
    pub arguments: String,
    /// The digest of the rules.
    pub policy: String,
    /// When it was made, in Unix seconds.
    pub issued: i64,
    /// Until when it is good, in Unix seconds.
    pub expires: i64,
    /// What makes it single-use; of a question to an approver, its id.
    pub nonce: String,
    /// Whether an approver let the call through, where the question is the upstream's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
}

/// A sealed state that came back, opened.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// What it is bound to; none if it is not ours, or was altered.
    pub ticket: Option<&'a Ticket>,
    /// Whether it was used before.
    pub spent: bool,
    /// What the person answered, where it was our question.
    pub answer: Option<Answer>,
}

impl Ticket {
    /// Whether a state that came back is this very one, but for its number and its expiry, and still good.
    #[must_use]
    pub fn is_met_by(&self, shown: &Ticket, now: Timestamp) -> bool {
        let Ticket { purpose, route, session_id, account, tool, arguments, policy, .. } = self;
        now.as_second() < shown.expires
            && *purpose == shown.purpose
            && *route == shown.route
            && *session_id == shown.session_id
            && *account == shown.account
            && *tool == shown.tool
            && *arguments == shown.arguments
            && *policy == shown.policy
    }
}

/// When a question asked now is no longer answered. The upstream's own questions have their own time; ours is only an end.
#[must_use]
pub fn expiry(purpose: Purpose, now: Timestamp) -> i64 {
    let seconds = match purpose {
        Purpose::Question | Purpose::Approval => QUESTION_SECONDS,
        Purpose::Upstream => UPSTREAM_STATE_SECONDS,
    };
    now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(now).as_second()
}

/// The question about a call.
#[must_use]
pub fn question(tool: &str, arguments: &str) -> String {
    let tool = shown(tool, QUESTION_TOOL_CHARACTERS);
    let arguments = shown(arguments, QUESTION_ARGUMENT_CHARACTERS);
    format!("Allow this call? Tool: {tool}. Arguments: {arguments}")
}

/// A text as a person can be shown it: what hides or turns text around is written out, and what is too long is cut.
fn shown(text: &str, most: usize) -> String {
    let cut = text.chars().nth(most).is_some();
    let mut shown = String::new();
    for character in text.chars().take(most) {
        match is_plain(character) {
            true => shown.push(character),
            false => shown.extend(character.escape_unicode()),
        }
    }
    if cut {
        shown.push_str(&format!("… ({} characters in all)", text.chars().count()));
    }
    shown
}

/// Whether a character shows itself: no control, no mark of direction, no space of no width.
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
        let asked = question("pay\u{202e}yap", "{\"to\":\"a\u{200b}b\"}");
        assert_eq!(asked, "Allow this call? Tool: pay\\u{202e}yap. Arguments: {\"to\":\"a\\u{200b}b\"}");
    }

    #[test]
    fn v_26_a_question_that_was_cut_says_so() {
        let asked = question("t", &"x".repeat(100_000));
        assert!(asked.ends_with("… (100000 characters in all)") && asked.len() < 5_000);
    }
}
