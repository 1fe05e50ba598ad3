//! The result of one check.

use serde::Serialize;

use crate::console::{Exit, Failure};

/// What a check found.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The name of what was checked.
    pub check: &'static str,
    /// Whether it is in order.
    pub state: FindingState,
    /// What was found, in one line.
    pub detail: String,
    /// A command that may help.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The exit code of a failed check.
    #[serde(skip)]
    pub exit: Option<Exit>,
}

/// The state of what was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// It is in order.
    Ok,
    /// It works, but an operator should know.
    Warning,
    /// It does not work.
    Failed,
    /// It could not be checked, or is not needed here.
    Skipped,
}

impl Finding {
    fn new(check: &'static str, state: FindingState, detail: String) -> Self {
        Self { check, state, detail, fix: None, exit: None }
    }

    /// Something that is in order.
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, FindingState::Ok, detail.into())
    }

    /// Something that works, but that an operator should know.
    pub fn warning(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, FindingState::Warning, detail.into())
    }

    /// Something that was not checked.
    pub fn skipped(check: &'static str, detail: impl Into<String>) -> Self {
        Self::new(check, FindingState::Skipped, detail.into())
    }

    /// Something that does not work.
    pub fn failed(check: &'static str, exit: Exit, detail: impl Into<String>) -> Self {
        Self { exit: Some(exit), ..Self::new(check, FindingState::Failed, detail.into()) }
    }

    /// A command that failed, with its exit code and hint.
    pub fn failure(check: &'static str, failure: &Failure) -> Self {
        let finding = Self::failed(check, failure.exit, failure.in_short());
        Self { fix: failure.get_hint().map(str::to_owned), ..finding }
    }

    /// Adds a command that may help.
    #[must_use]
    pub fn fix(mut self, command: impl Into<String>) -> Self {
        self.fix = Some(command.into());
        self
    }
}
