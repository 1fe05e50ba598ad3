//! Tool descriptions and their pins: whether a tool's description is still the one under which calls were allowed.
//!
//! A model chooses a tool by the description of the tool's server, so the description is a part of what an operator
//! allows. Its digest is pinned when the tool is first listed, or by an operator. After the description changes, the
//! tool is not called until an operator approves it. This holds even if the server returns to the old description,
//! since clients that listed the tools meanwhile have read the changed one.
//!
//! Not here: the parsing of tool lists and the storage of pins (the gateway), and the check of arguments against a
//! schema (the `schema` crate).

use jiff::Timestamp;
use jose::json::JsonError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits::MAX_TOOL;
use vap::digest::{Canon, Digest};
use vap::reason::Reason;

/// The values of `execution.taskSupport` in a tool's entry: whether the tool runs as a task.
const TASK_SUPPORT: [&str; 3] = ["forbidden", "optional", "required"];

/// The policy on pinned tool descriptions: which tools may be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolPins {
    /// `off`: every tool may be called.
    Off,
    /// `first-use`: a tool may be called if its description is as first listed, or as approved by an operator.
    #[default]
    FirstUse,
    /// `approved`: a tool may be called if an operator approved its present description.
    Approved,
}

impl ToolPins {
    /// Returns the name used in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ToolPins::Off => "off",
            ToolPins::FirstUse => "first-use",
            ToolPins::Approved => "approved",
        }
    }
}

/// The requirements of a route on tools and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRules {
    /// The policy on pinned descriptions.
    pub pins: ToolPins,
    /// `true` if arguments are checked against the tool's `inputSchema`, where it is known.
    pub check_arguments: bool,
}

impl Default for ToolRules {
    fn default() -> Self {
        Self { pins: ToolPins::default(), check_arguments: true }
    }
}

/// A tool's entry in `tools/list`, without its `_meta` and `execution.taskSupport`.
///
/// On one route, a server may state `execution.taskSupport` to clients of MCP 2025-11-25 and leave it out for those of
/// 2026-07-28, so it is no part of the pin. Any other member of `execution`, and any other value than those that MCP
/// defines, is pinned: a client might show it to its model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The digest of the canonical form.
    pub digest: Digest,
    /// The canonical form, or `None` if it is longer than [`MAX_TOOL`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The origin of a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinnedBy {
    /// The gateway pinned the description when it was first listed.
    FirstUse,
    /// An operator approved the description.
    Operator,
}

/// The pinned description of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinned {
    /// The description under which calls are allowed.
    pub description: Description,
    /// The origin of the pin.
    pub by: PinnedBy,
    /// The time of the pin in Unix seconds.
    pub at: i64,
}

/// The stored state of one tool of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The path of the route.
    pub route: String,
    /// The tool's name, as clients use it.
    pub tool: String,
    /// The pinned description; `None` if an operator has to approve the tool first.
    pub pinned: Option<Pinned>,
    /// The last listed description, if it differs from the pinned one.
    pub listed: Option<Description>,
    /// The time, in Unix seconds, when a description other than the pinned one was first listed.
    pub changed_at: Option<i64>,
    /// `true` if an operator's approval is not yet recorded on the log.
    #[serde(default)]
    pub approval_unrecorded: bool,
}

/// A change of a tool's description, compared with its pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The tool's name.
    pub tool: String,
    /// The digest of the pinned description; `None` if there was none.
    pub was: Option<Digest>,
    /// The digest of the listed description.
    pub is: Digest,
}

/// A defect of a call's tool or arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFault {
    /// The reason code for the Verdict.
    pub reason: Reason,
    /// The position in the arguments and the keyword of the schema; never the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// The result of checking a call's arguments before the decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedArguments {
    /// The digest of the tool description whose schema was used; `None` if the tool was unknown.
    pub against: Option<Digest>,
    /// The defect, if the check found one.
    pub fault: Option<ToolFault>,
}

impl ToolFault {
    /// Creates a fault without a position.
    #[must_use]
    pub const fn of(reason: Reason) -> Self {
        Self { reason, place: None }
    }
}

impl Description {
    /// Parses one tool of a `tools/list` result and returns its name and description.
    ///
    /// # Errors
    /// [`JsonError`] if the text is not strict JSON, which two parsers could read differently.
    pub fn of(text: &str) -> Result<(String, Self), JsonError> {
        let mut tool = jose::json::parse_text(text)?;
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Value::Object(members) = &mut tool {
            members.remove("_meta");
            remove_task_support(members);
        }
        let without = tool.to_string();
        let canon = Canon::of(jose::json::check_text(&without)?);
        let text = String::from_utf8(canon.bytes.clone()).ok().filter(|text| text.len() <= MAX_TOOL);
        Ok((name, Self { digest: canon.digest(), text }))
    }

    /// Returns a member of the tool as JSON text; `None` if it is absent, or the description was too long to be kept.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<String> {
        let tool = jose::json::parse_text(self.text.as_deref()?).ok()?;
        tool.get(name).map(Value::to_string)
    }
}

/// Removes `execution.taskSupport` from a tool's entry, and `execution` if nothing is left in it.
fn remove_task_support(tool: &mut Map<String, Value>) {
    let Some(Value::Object(execution)) = tool.get_mut("execution") else { return };
    let support = execution.get("taskSupport").and_then(Value::as_str);
    if support.is_some_and(|support| TASK_SUPPORT.contains(&support)) {
        execution.remove("taskSupport");
    }
    if execution.is_empty() {
        tool.remove("execution");
    }
}

impl Pin {
    /// Creates the state of a tool that is listed for the first time.
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
        pin.pin_first(pins, at);
        pin
    }

    /// Updates the state after a listing. Returns the difference if this is the first listed description that differs from
    /// the pinned one.
    pub fn listed(&mut self, description: Description, pins: ToolPins, at: Timestamp) -> Option<Difference> {
        let is = description.digest.clone();
        let was = self.pinned.as_ref().map(|pinned| pinned.description.digest.clone());
        if was.as_ref() == Some(&is) {
            self.listed = None;
            return None;
        }
        self.listed = Some(description);
        self.pin_first(pins, at);
        if self.listed.is_none() || was.is_none() || pins == ToolPins::Off || self.changed_at.is_some() {
            return None;
        }
        self.changed_at = Some(at.as_second());
        Some(Difference { tool: self.tool.clone(), was, is })
    }

    /// Pins the last listed description as approved by an operator.
    pub fn approve(&mut self, at: Timestamp) {
        let pinned = self.pinned.take().map(|pinned| pinned.description);
        let description = self.listed.take().or(pinned);
        self.pinned =
            description.map(|description| Pinned { description, by: PinnedBy::Operator, at: at.as_second() });
        self.changed_at = None;
        self.approval_unrecorded = true;
    }

    /// Returns the description that calls are checked against: the pinned one or, without pins, the last listed one.
    #[must_use]
    pub fn in_force(&self, pins: ToolPins) -> Option<&Description> {
        let pinned = self.pinned.as_ref().map(|pinned| &pinned.description);
        match pins {
            ToolPins::Off => self.listed.as_ref().or(pinned),
            ToolPins::FirstUse | ToolPins::Approved => pinned,
        }
    }

    /// Returns the description that an operator would approve or has approved: the last listed one.
    #[must_use]
    pub fn newest(&self) -> Option<&Description> {
        self.in_force(ToolPins::Off)
    }

    fn pin_first(&mut self, pins: ToolPins, at: Timestamp) {
        if self.pinned.is_none() && pins != ToolPins::Approved {
            let (by, at) = (PinnedBy::FirstUse, at.as_second());
            self.pinned = self.listed.take().map(|description| Pinned { description, by, at });
        }
    }
}

impl ToolRules {
    /// Returns `true` if the route needs tool descriptions: for pins, or to check arguments.
    #[must_use]
    pub const fn watches(&self) -> bool {
        !matches!(self.pins, ToolPins::Off) || self.check_arguments
    }

    /// Returns the defect of a call's tool or arguments, by the tool's state at the time of the decision. Arguments
    /// that were checked against another description count as [`Reason::ToolChanged`].
    #[must_use]
    pub fn fault_of(&self, pin: Option<&Pin>, checked: &CheckedArguments) -> Option<ToolFault> {
        if let Some(reason) = self.fault(pin) {
            return Some(ToolFault::of(reason));
        }
        match self.check_arguments {
            true if self.is_outdated(pin, checked) => Some(ToolFault::of(Reason::ToolChanged)),
            true => checked.fault.clone(),
            false => None,
        }
    }

    /// Returns whether arguments were checked against another description than the one in force.
    #[must_use]
    pub fn is_outdated(&self, pin: Option<&Pin>, checked: &CheckedArguments) -> bool {
        let in_force = pin.and_then(|pin| pin.in_force(self.pins)).map(|description| &description.digest);
        self.check_arguments && in_force != checked.against.as_ref()
    }

    /// Returns the reason why a tool may not be called, if there is one. A tool without a [`Pin`] has not been listed
    /// yet; only [`ToolPins::Approved`] denies it.
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
    fn what_a_tool_says_is_all_but_meta_and_task_support_and_not_how_it_is_written() {
        let (name, plain) = Description::of(r#"{"name":"a","inputSchema":{"type":"object"}}"#).unwrap();
        let (_, other) =
            Description::of(r#"{ "_meta":{"x":1}, "inputSchema":{"type":"\u006fbject"}, "name":"a" }"#)
                .unwrap();
        assert_eq!((name.as_str(), &plain), ("a", &other));
        let as_task =
            r#"{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}"#;
        assert_eq!(
            Description::of(as_task).unwrap().1,
            plain,
            "one revision of MCP has it, the other has not"
        );
        for other in [
            r#"{"name":"b","inputSchema":{"type":"object"}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"},"title":"A"}"#,
            r#"{"name":"a","inputSchema":{"type":"object","required":["x"]}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"},"outputSchema":{}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"Read every file first."}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional","x":"Read every file first."}}"#,
            r#"{"name":"a","inputSchema":{"type":"object"},"execution":"Read every file first."}"#,
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
        assert_eq!(rules.fault(Some(&first)), Some(Reason::ToolNotApproved), "first use is not an approval");
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
