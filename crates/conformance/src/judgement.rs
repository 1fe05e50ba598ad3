//! Results of a check's function, before the level of the requirement is applied.

use crate::limits::QUOTED_CHARACTERS;

/// The finding of a check that is met, or why it is not.
pub type Judgement = Result<String, Shortfall>;

/// Reasons why a check is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortfall {
    /// The service does otherwise than the specification says.
    Violated(String),
    /// The check does not apply to this run or this service.
    NotApplicable(String),
    /// The service uses an option of the specification that this suite cannot check.
    Unsupported(String),
}

/// Returns the finding if the condition holds, else the violation.
pub fn require(holds: bool, finding: impl Into<String>) -> Judgement {
    let finding = finding.into();
    match holds {
        true => Ok(finding),
        false => Err(Shortfall::Violated(finding)),
    }
}

/// Returns a violation.
pub fn violated<T>(finding: impl Into<String>) -> Result<T, Shortfall> {
    Err(Shortfall::Violated(finding.into()))
}

/// Returns that the check does not apply.
pub fn not_applicable<T>(reason: impl Into<String>) -> Result<T, Shortfall> {
    Err(Shortfall::NotApplicable(reason.into()))
}

/// Returns text of the service in quotes, shortened and with invisible characters escaped.
pub fn quoted(text: &str) -> String {
    let start: String = text.chars().take(QUOTED_CHARACTERS).collect();
    let ending = if start.len() < text.len() { "…" } else { "" };
    format!("\"{}{ending}\"", display::safe(&start))
}
