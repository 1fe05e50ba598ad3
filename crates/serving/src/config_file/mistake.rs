//! Mistakes in a configuration, all of them with their lines.

use std::fmt;

/// One mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mistake {
    /// The line of the file, from 1; `None` for a mistake outside the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The key, such as `log.url`.
    pub key: String,
    /// The defect, in words.
    pub why: String,
}

/// All mistakes of a file, in the order of their lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    /// A list of a single mistake.
    pub fn one(line: Option<usize>, key: impl Into<String>, why: impl Into<String>) -> Self {
        Self(vec![Mistake { line, key: key.into(), why: why.into() }])
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}: {}", self.key, self.why),
            None => write!(f, "{}: {}", self.key, self.why),
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.0.iter().enumerate() {
            write!(f, "{}{mistake}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
