//! The flags that say what to leave out of a record.

use clap::Args;
use translators::{EntryType, FieldPattern, Redaction, RedactionRule, Selection};

use crate::console::{Exit, Failure};

#[derive(Debug, Args)]
pub struct RedactionArgs {
    /// Apply a rule: home-path, high-entropy
    #[arg(long, value_name = "RULE")]
    redact: Vec<RedactionRule>,
    /// Do not apply a default rule
    #[arg(long, value_name = "RULE")]
    no_redact: Vec<RedactionRule>,
    /// Leave out values; * is a step, ** any number
    #[arg(long, value_name = "POINTER")]
    redact_field: Vec<FieldPattern>,
    /// Keep only these types of entries
    #[arg(long, value_name = "TYPES", value_delimiter = ',', conflicts_with = "without")]
    only: Vec<EntryType>,
    /// Leave out these types of entries
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    without: Vec<EntryType>,
}

impl RedactionArgs {
    /// The redaction: the default rules with the changes of the flags.
    ///
    /// # Errors
    /// A usage error if a pattern names what a record cannot be without.
    pub fn redaction(&self) -> Result<Redaction, Failure> {
        let mut redaction = Redaction::default();
        redaction.rules.extend(&self.redact);
        redaction.rules.retain(|rule| !self.no_redact.contains(rule));
        redaction.fields.clone_from(&self.redact_field);
        redaction.selection = match self.only.as_slice() {
            [] => Selection::default().without(self.without.iter().copied()),
            only => Selection::only(only.iter().copied()),
        };
        redaction.check().map_err(|why| Failure::new(Exit::Usage, "usage", why))?;
        Ok(redaction)
    }
}
