//! `tabellion record redact`: makes a new record without secrets, fields or types of entries.

use std::path::PathBuf;

use clap::Args;
use translators::redact;

use super::document;
use super::redaction_args::RedactionArgs;
use super::sign::check_unsigned;
use crate::console::files::{self, Access, Existing};
use crate::console::{Failure, members};
use crate::context::Context;

#[derive(Debug, Args)]
pub struct Redact {
    /// The record, signed or not
    file: PathBuf,
    /// The output file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    redaction: RedactionArgs,
}

impl Redact {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let redaction = self.redaction.redaction()?;
        let original = document::bytes(&self.file)?;
        let (record, redactions) = redact(&original, &redaction)
            .map_err(|error| document::no_record(&self.file, error.to_string()))?;
        check_unsigned(record.bytes(), &self.output)?;
        files::write(&self.output, record.bytes(), Access::Ordinary, Existing::Keep)?;
        if files::is_stream(&self.output) {
            return Ok(());
        }
        context.console.note(format!("wrote      {}", self.output.display()));
        let digest = record.digest();
        context.console.print(&members! { digest, redactions }, |out| {
            for (rule, count) in redactions.counts() {
                writeln!(out, "{count:6} {rule} left out")?;
            }
            writeln!(out, "{digest}")
        })
    }
}
