//! One shape for every error a person or a script meets.

use std::fmt::Write as _;

use serde::Serialize;

use super::exit::Exit;
use super::safe_text::safe;

/// What happened, what was expected and found, why it matters, and one command that mends it.
///
/// `what`, facts and hint may quote bytes that somebody else wrote; they are escaped when printed.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// How the process ends.
    #[serde(skip)]
    pub exit: Exit,
    /// A stable word: `tabellion help errors` explains it.
    pub code: String,
    /// One line, in the reader's words.
    pub what: String,
    /// Name and value pairs: expected, found, where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<(String, String)>,
    /// Why it matters, where that is not plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// One command that helps.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The result on stdout says it all: only the exit code is left to give.
    #[serde(skip)]
    pub told: bool,
}

impl Failure {
    /// A failure that ends with `exit`.
    pub fn new(exit: Exit, code: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            exit,
            code: code.into(),
            what: what.into(),
            facts: Vec::new(),
            why: None,
            hint: None,
            told: false,
        }
    }

    /// Adds a line of what was expected, found or meant.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// Says why it matters.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// An ending whose reasons are in the printed result.
    pub fn told(exit: Exit) -> Self {
        Self { told: true, ..Self::new(exit, "told", "see the result") }
    }

    /// Names one command that helps.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The lines a person reads.
    pub fn to_text(&self) -> String {
        let mut text = format!("error: {}  [{}]\n", safe(&self.what), safe(&self.code));
        let width = self.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.facts {
            let _ = writeln!(text, "  {:width$}  {}", safe(name), safe(value));
        }
        if let Some(why) = &self.why {
            let _ = writeln!(text, "  {}", safe(why));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "  try: {}", safe(hint));
        }
        text
    }

    /// The same as one JSON object on one line.
    pub fn to_json(&self) -> String {
        serde_json::json!({ "error": self }).to_string()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Failure, "io", error.to_string())
    }
}
