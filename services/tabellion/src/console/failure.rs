//! One shape for every error a person or a script meets.

use std::fmt::Write as _;

use serde::Serialize;

use super::exit::Exit;
use super::safe_json;
use super::safe_text::safe;

/// What happened, what was expected and found, why it matters, and one command that mends it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// The result on stdout says it all: only the exit code is left to give.
    pub told: bool,
    /// Somebody who is trusted is not to be trusted any more.
    security: bool,
    words: Box<Words>,
}

/// What may be quoted here was written by somebody else; it is escaped when printed.
#[derive(Clone, Debug, Serialize)]
struct Words {
    /// A stable word: `tabellion help errors` explains it.
    code: String,
    /// One line, in the reader's words.
    what: String,
    /// Name and value pairs: expected, found, where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    facts: Vec<(String, String)>,
    /// Why it matters, where that is not plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// One command that helps.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Failure {
    /// A failure that ends with `exit`.
    pub fn new(exit: Exit, code: impl Into<String>, what: impl Into<String>) -> Self {
        let words = Words { code: code.into(), what: what.into(), facts: Vec::new(), why: None, hint: None };
        Self { exit, told: false, security: false, words: Box::new(words) }
    }

    /// An ending whose reasons are in the printed result.
    pub fn told(exit: Exit) -> Self {
        Self { told: true, ..Self::new(exit, "told", "see the result") }
    }

    /// The same failure with another exit code.
    #[must_use]
    pub fn ending_with(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Somebody who is trusted is not to be trusted any more: said so that nobody takes it for a mishap.
    #[must_use]
    pub fn security(mut self) -> Self {
        self.security = true;
        self
    }

    /// Adds a line of what was expected, found or meant.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.words.facts.push((name.into(), value.into()));
        self
    }

    /// Says why it matters.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.words.why = Some(why.into());
        self
    }

    /// Names one command that helps.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.words.hint = Some(hint.into());
        self
    }

    /// What happened and what is known about it, on one line: for a list of such lines.
    pub fn in_short(&self) -> String {
        let facts = self.words.facts.iter().map(|(name, value)| format!("{name}: {value}"));
        std::iter::once(self.words.what.clone()).chain(facts).collect::<Vec<_>>().join("; ")
    }

    /// The lines a person reads.
    pub fn to_text(&self) -> String {
        let words = &self.words;
        let kind = if self.security { "SECURITY ERROR" } else { "error" };
        let mut text = format!("{kind}: {}  [{}]\n", safe(&words.what), safe(&words.code));
        let width = words.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &words.facts {
            let _ = writeln!(text, "  {:width$}  {}", safe(name), safe(value));
        }
        if let Some(why) = &words.why {
            let _ = writeln!(text, "  {}", safe(why));
        }
        if let Some(hint) = &words.hint {
            let _ = writeln!(text, "  try: {}", safe(hint));
        }
        text
    }

    /// The same as one JSON object on one line.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Error<'a> {
            error: &'a Words,
        }
        safe_json::text(&Error { error: &self.words })
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Failure, "io", error.to_string())
    }
}
