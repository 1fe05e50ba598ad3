//! What is wrong with a configuration, all of it, with the lines.

use std::fmt;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Mistake {
    /// The line of the file, from 1; none for what is not in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The key.
    pub key: String,
    /// What is wrong.
    pub why: String,
}

/// Every mistake of a file, in the order of its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    /// A single one.
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
