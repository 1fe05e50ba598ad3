//! The error type of all commands, for display and for scripts.

use std::borrow::Cow;
use std::fmt::Write as _;

use display::safe;
use serde::Serialize;

use super::exit::Exit;
use super::safe_json;

/// Maximum number of characters of a fact that are displayed; JSON has all of them.
const FACT_CHARACTERS: usize = 400;

/// An error of a command: its description, facts, reason, and a command that may help.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The exit code of the process.
    pub exit: Exit,
    /// True if the result on stdout describes the error, so that only the exit code is left to set.
    pub printed: bool,
    /// True for evidence that a trusted party is no longer trustworthy.
    security: bool,
    words: Box<Words>,
}

/// The texts of an error. They may quote untrusted text, which is escaped on output.
#[derive(Clone, Debug, Serialize)]
struct Words {
    /// A stable identifier, explained by `tabellion help errors`.
    code: String,
    /// The description, in one line.
    what: String,
    /// Pairs of name and value, such as the expected and the found value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    facts: Vec<(String, String)>,
    /// The reason why the error matters, if it is not obvious.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// A command that may help.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Failure {
    /// Creates a failure with this exit code.
    pub fn new(exit: Exit, code: impl Into<String>, what: impl Into<String>) -> Self {
        let words = Words { code: code.into(), what: what.into(), facts: Vec::new(), why: None, hint: None };
        Self { exit, printed: false, security: false, words: Box::new(words) }
    }

    /// Creates a failure whose details are in the printed result, so that only [`Exit`] is left to set.
    pub fn already_printed(exit: Exit) -> Self {
        Self { printed: true, ..Self::new(exit, "printed", "see the result") }
    }

    /// Replaces the exit code.
    #[must_use]
    pub fn ending_with(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Marks the failure as a `SECURITY ERROR`: evidence that a trusted party is no longer trustworthy.
    #[must_use]
    pub fn security(mut self) -> Self {
        self.security = true;
        self
    }

    /// Adds a fact, such as the expected or the found value.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.words.facts.push((name.into(), value.into()));
        self
    }

    /// Sets the reason why the error matters.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.words.why = Some(why.into());
        self
    }

    /// Sets a command that may help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.words.hint = Some(hint.into());
        self
    }

    /// Returns whether this is the code of the failure.
    pub fn has_code(&self, code: &str) -> bool {
        self.words.code == code
    }

    /// Returns the command that may help.
    pub fn get_hint(&self) -> Option<&str> {
        self.words.hint.as_deref()
    }

    /// Formats description and facts in one line, for lists of errors.
    pub fn in_short(&self) -> String {
        let facts = self.words.facts.iter().map(|(name, value)| format!("{name}: {value}"));
        std::iter::once(self.words.what.clone()).chain(facts).collect::<Vec<_>>().join("; ")
    }

    /// Formats the error as lines for display.
    pub fn to_text(&self) -> String {
        let words = &self.words;
        let kind = if self.security { "SECURITY ERROR" } else { "error" };
        let mut text = format!("{kind}: {}  [{}]\n", safe(&words.what), safe(&words.code));
        let width = words.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &words.facts {
            let _ = writeln!(text, "  {:width$}  {}", safe(name), safe(&shortened(value)));
        }
        if let Some(why) = &words.why {
            let _ = writeln!(text, "  {}", safe(why));
        }
        if let Some(hint) = &words.hint {
            let _ = writeln!(text, "  try: {}", safe(hint));
        }
        text
    }

    /// Formats the error as one line of JSON: an object with the member `error`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Error<'a> {
            error: &'a Words,
        }
        safe_json::text(&Error { error: &self.words })
    }
}

/// Returns the beginning of a value that is too long for display, which may come from a stranger's file, with its length.
fn shortened(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(FACT_CHARACTERS) {
        None => Cow::Borrowed(value),
        Some((end, _)) => Cow::Owned(format!("{}… ({} characters)", &value[..end], value.chars().count())),
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Failure, "io", error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_too_long_for_display_is_shortened_and_json_has_all_of_it() {
        let whole = "ü".repeat(FACT_CHARACTERS);
        let failure = |value: String| Failure::new(Exit::Failure, "code", "what").fact("name", value);
        assert!(failure(whole.clone()).to_text().contains(&format!("  name  {whole}\n")));
        let longer = failure(format!("{whole}!"));
        assert!(longer.to_text().contains(&format!("  name  {whole}… (401 characters)\n")));
        assert!(longer.to_json().contains(&format!("{whole}!")));
    }
}
