//! What a server says of its tools, and whether it still says what calls were allowed under.
//!
//! A model chooses a tool by what the tool's server says of it, so that is a part of what an operator allows. Its digest is pinned:
//! when it is first seen, or by an operator. A tool that says something else since then is not called before an operator has approved
//! that, not even if it says the old thing again: whoever listed it meanwhile has read the other.
//!
//! Not here: how lists of tools are read and pins are kept (the gateway), and whether arguments fit a schema (`schema`).

use jiff::Timestamp;
use jose::json::JsonError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::{Canon, Digest};
use crate::limits::MAX_TOOL;
use crate::reason::Reason;

/// Which tools may be called, by what their server says of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolPins {
    /// All of them.
    Off,
    /// Those that say what they said when they were first seen, or when an operator approved them.
    #[default]
    FirstUse,
    /// Those that an operator approved as they are.
    Approved,
}

impl ToolPins {
    /// The word of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ToolPins::Off => "off",
            ToolPins::FirstUse => "first-use",
            ToolPins::Approved => "approved",
        }
    }
}

/// What a route demands of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRules {
    /// Which may be called.
    pub pins: ToolPins,
    /// Whether arguments are held against the schema of the tool, where it is known.
    pub check_arguments: bool,
}

impl Default for ToolRules {
    fn default() -> Self {
        Self { pins: ToolPins::default(), check_arguments: true }
    }
}

/// What a tool says of itself: everything but `_meta`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The digest of its canonical form.
    pub digest: Digest,
    /// Its canonical form, if it is not longer than what is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Who pinned a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinnedBy {
    /// Nobody: it was as it was first seen.
    FirstUse,
    /// An operator.
    Operator,
}

/// What calls of a tool are allowed under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinned {
    /// What the tool says.
    pub description: Description,
    /// By whom.
    pub by: PinnedBy,
    /// When, in Unix seconds.
    pub at: i64,
}

/// What is kept of one tool of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The path of the route.
    pub route: String,
    /// The tool's name, as clients call it.
    pub tool: String,
    /// What calls are allowed under; none while an operator has to approve it first.
    pub pinned: Option<Pinned>,
    /// What was listed last, if it is not what is pinned.
    pub listed: Option<Description>,
    /// When something else than what is pinned was first listed, in Unix seconds.
    pub changed_at: Option<i64>,
    /// Whether an approval is not recorded yet.
    #[serde(default)]
    pub approval_unrecorded: bool,
}

/// A tool that says something else than what is pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub tool: String,
    /// What is pinned; none if nothing was.
    pub was: Option<Digest>,
    /// What it says now.
    pub is: Digest,
}

/// What is wrong with the tool of a call, or with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFault {
    /// The code.
    pub reason: Reason,
    /// Where, and by which keyword of the schema; never the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// What a call's arguments were held against before the call is decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedArguments {
    /// The digest of what the tool says of itself, by which they were checked; none if nothing was known of it.
    pub against: Option<Digest>,
    /// What came of it.
    pub fault: Option<ToolFault>,
}

impl ToolFault {
    /// Without a place.
    #[must_use]
    pub const fn of(reason: Reason) -> Self {
        Self { reason, place: None }
    }
}

impl Description {
    /// Of the text of one tool in a list.
    ///
    /// # Errors
    /// If it is no strict JSON: two readers could see two tools in it.
    pub fn of(text: &str) -> Result<(String, Self), JsonError> {
        let mut tool = jose::json::parse_text(text)?;
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Value::Object(members) = &mut tool {
            members.remove("_meta");
        }
        let without = tool.to_string();
        let canon = Canon::of(jose::json::check_text(&without)?);
        let text = String::from_utf8(canon.bytes.clone()).ok().filter(|text| text.len() <= MAX_TOOL);
        Ok((name, Self { digest: canon.digest(), text }))
    }

    /// A member of it, as JSON text. None if it is not there, or what the tool says is too long to be kept.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<String> {
        let tool = jose::json::parse_text(self.text.as_deref()?).ok()?;
        tool.get(name).map(Value::to_string)
    }
}

impl Pin {
    /// Of a tool that is listed for the first time.
    #[must_use]
    pub fn first(route: &str, tool: &str, description: Description, pins: ToolPins, at: Timestamp) -> Self {
        let mut pin = Self {
            route: route.to_owned(),
            tool: tool.to_owned(),
            pinned: None,
            listed: Some(description),
            changed_at: None,
            approval_unrecorded: false,
        };
        pin.take_first(pins, at);
        pin
    }

    /// The tool is listed again. Answers the difference if it says something else than what is pinned, and did not before.
    pub fn listed(&mut self, description: Description, pins: ToolPins, at: Timestamp) -> Option<Difference> {
        let is = description.digest.clone();
        let was = self.pinned.as_ref().map(|pinned| pinned.description.digest.clone());
        if was.as_ref() == Some(&is) {
            self.listed = None;
            return None;
        }
        self.listed = Some(description);
        self.take_first(pins, at);
        if self.listed.is_none() || was.is_none() || pins == ToolPins::Off || self.changed_at.is_some() {
            return None;
        }
        self.changed_at = Some(at.as_second());
        Some(Difference { tool: self.tool.clone(), was, is })
    }

    /// An operator approves what was listed last.
    pub fn approve(&mut self, at: Timestamp) {
        let pinned = self.pinned.take().map(|pinned| pinned.description);
        let description = self.listed.take().or(pinned);
        self.pinned =
            description.map(|description| Pinned { description, by: PinnedBy::Operator, at: at.as_second() });
        self.changed_at = None;
        self.approval_unrecorded = true;
    }

    /// What the tool says, as far as calls are concerned. Without pins that is what was listed last.
    #[must_use]
    pub fn in_force(&self, pins: ToolPins) -> Option<&Description> {
        let pinned = self.pinned.as_ref().map(|pinned| &pinned.description);
        match pins {
            ToolPins::Off => self.listed.as_ref().or(pinned),
            ToolPins::FirstUse | ToolPins::Approved => pinned,
        }
    }

    /// What an operator would approve, or has approved.
    #[must_use]
    pub fn newest(&self) -> Option<&Description> {
        self.in_force(ToolPins::Off)
    }

    fn take_first(&mut self, pins: ToolPins, at: Timestamp) {
        if self.pinned.is_none() && pins != ToolPins::Approved {
            let (by, at) = (PinnedBy::FirstUse, at.as_second());
            self.pinned = self.listed.take().map(|description| Pinned { description, by, at });
        }
    }
}

impl ToolRules {
    /// Whether anything has to be known of a route's tools.
    #[must_use]
    pub const fn watches(&self) -> bool {
        !matches!(self.pins, ToolPins::Off) || self.check_arguments
    }

    /// What is wrong with a call of a tool, by what is kept of the tool when the call is decided.
    #[must_use]
    pub fn fault_of(&self, pin: Option<&Pin>, checked: &CheckedArguments) -> Option<ToolFault> {
        if let Some(reason) = self.fault(pin) {
            return Some(ToolFault::of(reason));
        }
        let in_force = pin.and_then(|pin| pin.in_force(self.pins)).map(|description| &description.digest);
        match self.check_arguments {
            true if in_force != checked.against.as_ref() => Some(ToolFault::of(Reason::ToolChanged)),
            true => checked.fault.clone(),
            false => None,
        }
    }

    /// Why a tool may not be called; none if it may. A tool that nobody has listed yet is not known.
    #[must_use]
    pub fn fault(&self, pin: Option<&Pin>) -> Option<Reason> {
        let changed = || {
            pin.is_some_and(|pin| pin.pinned.is_some() && (pin.changed_at.is_some() || pin.listed.is_some()))
        };
        let is_approved = || {
            pin.is_some_and(|pin| pin.pinned.as_ref().is_some_and(|pinned| pinned.by == PinnedBy::Operator))
        };
        match self.pins {
            ToolPins::Off => None,
            ToolPins::FirstUse | ToolPins::Approved if changed() => Some(Reason::ToolChanged),
            ToolPins::FirstUse => None,
            ToolPins::Approved => (!is_approved()).then_some(Reason::ToolNotApproved),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn says(words: &str) -> Description {
        let text = format!(r#"{{"name":"t","description":"{words}","inputSchema":{{"type":"object"}}}}"#);
        Description::of(&text).unwrap().1
    }

    fn fault(pins: ToolPins, pin: &Pin) -> Option<Reason> {
        ToolRules { pins, check_arguments: true }.fault(Some(pin))
    }

    #[test]
    fn what_a_tool_says_is_all_but_meta_and_not_how_it_is_written() {
        let (name, plain) = Description::of(r#"{"name":"a","inputSchema":{"type":"object"}}"#).unwrap();
        let (_, other) =
            Description::of(r#"{ "_meta":{"x":1}, "inputSchema":{"type":"\u006fbject"}, "name":"a" }"#)
                .unwrap();
        assert_eq!((name.as_str(), &plain), ("a", &other));
        for other in [
            r#"{"name":"b","inputSchema":{"type":"object"}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"},"title":"A"}"#,
            r#"{"name":"a","inputSchema":{"type":"object","required":["x"]}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"},"outputSchema":{}}"#,
        ] {
            assert_ne!(Description::of(other).unwrap().1.digest, plain.digest, "{other}");
        }
        assert!(Description::of(r#"{"name":"a","description":"x","description":"y"}"#).is_err());
        assert_eq!(plain.member("inputSchema").as_deref(), Some(r#"{"type":"object"}"#));
    }

    #[test]
    fn a_long_description_is_pinned_by_its_digest_alone() {
        let long = says(&"x".repeat(MAX_TOOL));
        assert_eq!((long.text.is_none(), long.member("inputSchema")), (true, None));
        assert_ne!(long.digest, says(&"x".repeat(MAX_TOOL + 1)).digest);
    }

    #[test]
    fn a_tool_is_pinned_as_it_is_first_seen_and_denied_once_it_says_something_else() {
        let mut pin = Pin::first("/mcp", "t", says("good"), ToolPins::FirstUse, NOW);
        assert_eq!(fault(ToolPins::FirstUse, &pin), None);
        assert_eq!(pin.listed(says("good"), ToolPins::FirstUse, NOW), None);
        let changed = pin.listed(says("evil"), ToolPins::FirstUse, NOW).unwrap();
        assert_eq!((changed.was, changed.is), (Some(says("good").digest), says("evil").digest));
        assert_eq!(fault(ToolPins::FirstUse, &pin), Some(Reason::ToolChanged));
        assert_eq!(pin.listed(says("worse"), ToolPins::FirstUse, NOW), None, "it is recorded once");
        assert_eq!(pin.newest(), Some(&says("worse")));
    }

    #[test]
    fn what_was_read_meanwhile_is_not_undone_by_the_old_description() {
        let mut pin = Pin::first("/mcp", "t", says("good"), ToolPins::FirstUse, NOW);
        let _ = pin.listed(says("evil"), ToolPins::FirstUse, NOW);
        assert_eq!(pin.listed(says("good"), ToolPins::FirstUse, NOW), None);
        assert_eq!(fault(ToolPins::FirstUse, &pin), Some(Reason::ToolChanged));
        pin.approve(NOW);
        assert_eq!((fault(ToolPins::FirstUse, &pin), pin.newest()), (None, Some(&says("good"))));
    }

    #[test]
    fn an_approval_is_of_what_was_listed_last_and_holds_until_the_next_change() {
        let mut pin = Pin::first("/mcp", "t", says("a"), ToolPins::FirstUse, NOW);
        let _ = pin.listed(says("b"), ToolPins::FirstUse, NOW);
        pin.approve(NOW);
        assert!(pin.approval_unrecorded);
        for pins in [ToolPins::Off, ToolPins::FirstUse, ToolPins::Approved] {
            assert_eq!((fault(pins, &pin), pin.in_force(pins)), (None, Some(&says("b"))));
        }
        assert!(pin.listed(says("a"), ToolPins::Approved, NOW).is_some());
        assert_eq!(fault(ToolPins::Approved, &pin), Some(Reason::ToolChanged));
    }

    #[test]
    fn where_approval_is_demanded_nothing_else_lets_a_tool_be_called() {
        let rules = ToolRules { pins: ToolPins::Approved, check_arguments: false };
        assert_eq!(rules.fault(None), Some(Reason::ToolNotApproved));
        let mut pin = Pin::first("/mcp", "t", says("a"), ToolPins::Approved, NOW);
        assert_eq!(
            (rules.fault(Some(&pin)), pin.in_force(ToolPins::Approved)),
            (Some(Reason::ToolNotApproved), None)
        );
        assert_eq!(
            pin.listed(says("b"), ToolPins::Approved, NOW),
            None,
            "nothing was pinned that could change"
        );
        pin.approve(NOW);
        assert_eq!((rules.fault(Some(&pin)), pin.newest()), (None, Some(&says("b"))));
        let first = Pin::first("/mcp", "t", says("a"), ToolPins::FirstUse, NOW);
        assert_eq!(rules.fault(Some(&first)), Some(Reason::ToolNotApproved), "first use is no approval");
    }

    #[test]
    fn a_tool_that_nobody_listed_is_no_fault_on_first_use() {
        assert_eq!(ToolRules::default().fault(None), None);
        assert_eq!(ToolRules { pins: ToolPins::Off, ..ToolRules::default() }.fault(None), None);
    }

    #[test]
    fn arguments_count_as_checked_only_against_what_is_in_force_when_the_call_is_decided() {
        let rules = ToolRules::default();
        let mut pin = Pin::first("/mcp", "t", says("a"), ToolPins::FirstUse, NOW);
        let checked = |fault: Option<ToolFault>| CheckedArguments { against: Some(says("a").digest), fault };
        let misfit = ToolFault::of(Reason::ArgumentsInvalid);
        assert_eq!(rules.fault_of(Some(&pin), &checked(None)), None);
        assert_eq!(rules.fault_of(Some(&pin), &checked(Some(misfit.clone()))), Some(misfit.clone()));
        let _ = pin.listed(says("b"), ToolPins::FirstUse, NOW);
        pin.approve(NOW);
        let changed = Some(ToolFault::of(Reason::ToolChanged));
        assert_eq!(rules.fault_of(Some(&pin), &checked(None)), changed, "approved while the call waited");
        assert_eq!(rules.fault_of(Some(&pin), &CheckedArguments::default()), changed);
        assert_eq!(rules.fault_of(None, &CheckedArguments::default()), None);
        let unchecked = ToolRules { check_arguments: false, ..rules };
        assert_eq!(unchecked.fault_of(Some(&pin), &checked(Some(misfit))), None);
    }

    #[test]
    fn without_pins_the_newest_description_is_in_force_and_pins_that_come_later_see_the_change() {
        let mut pin = Pin::first("/mcp", "t", says("a"), ToolPins::Off, NOW);
        assert_eq!(pin.listed(says("b"), ToolPins::Off, NOW), None);
        assert_eq!((fault(ToolPins::Off, &pin), pin.in_force(ToolPins::Off)), (None, Some(&says("b"))));
        assert_eq!(fault(ToolPins::FirstUse, &pin), Some(Reason::ToolChanged));
    }
}
