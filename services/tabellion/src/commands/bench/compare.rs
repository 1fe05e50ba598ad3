//! `bench compare`: prints the ratios of two results, and which differences exceed the spread of their rounds.

use std::io::{self, Write};
use std::path::PathBuf;

use bench::compare::{Change, ComparedFigure, Comparison, compare};
use clap::Args;
use owo_colors::OwoColorize;
use serde::Serialize;

use super::read_result;
use crate::console::{Failure, Report, safe};
use crate::context::Context;

#[derive(Debug, Args)]
pub struct Compare {
    /// A result, from `bench run --output`
    before: PathBuf,
    /// Another result
    after: PathBuf,
}

impl Compare {
    /// Compares the results.
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let comparison = compare(&read_result(&self.before)?, &read_result(&self.after)?);
        if !comparison.different_settings.is_empty() {
            context.console.note(format!("settings differ: {}", comparison.different_settings.join(", ")));
        }
        context.console.result(&Compared(&comparison))
    }
}

/// The comparison, as a command's result.
#[derive(Serialize)]
#[serde(transparent)]
struct Compared<'r>(&'r Comparison);

impl Report for Compared<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.0.databases.is_empty() {
            return writeln!(out, "the results have no database in common");
        }
        for database in &self.0.databases {
            writeln!(out, "{}", safe(&database.database))?;
            writeln!(out, "{:44} {:>11} {:>11} {:>7}", "", "before", "after", "ratio")?;
            database.figures.iter().try_for_each(|figure| print_figure(out, figure))?;
        }
        Ok(())
    }
}

fn print_figure(out: &mut dyn Write, figure: &ComparedFigure) -> io::Result<()> {
    let ComparedFigure { name, unit, before, after, ratio, change } = figure;
    let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"));
    let label = format!("{}, {unit}", safe(name));
    write!(out, "{label:44} {before:>11.2} {after:>11.2} {ratio:>7}")?;
    match change {
        Change::Unchanged => writeln!(out),
        Change::Better => writeln!(out, "  {}", "better".green()),
        Change::Worse => writeln!(out, "  {}", "worse".red()),
    }
}
