//! `tabellion gateway replay`: decides a recorded session again, and compares the answers.

use std::io::{self, Write};

use clap::Args;
use gateway::again::{self, Again, AgainError, Compared, Decided};
use serde::Serialize;

use super::config_file;
use crate::cli::Context;
use crate::console::{Exit, Failure, Report, safe};

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway replay --config gateway.toml SESSION")]
pub struct Replay {
    /// The session, by its VAP session_id
    session: String,
}

impl Replay {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let config = config_file::read_or_dev(context)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let records = runtime.block_on(again::records(&config, &self.session)).map_err(failed)?;
        let mut lived = Again::under(&config);
        let decisions = again::replay(&mut lived, &records).map_err(failed)?;
        let told = Replayed {
            session: self.session,
            records: records.len(),
            differences: decisions.iter().filter(|decision| decision.differs).count(),
            decisions,
        };
        context.console.result(&told)?;
        match told.differences {
            0 => Ok(()),
            _ => Err(Failure::told(Exit::VerificationFailed)),
        }
    }
}

/// Converts an error of replaying a session.
pub fn failed(error: AgainError) -> Failure {
    match &error {
        AgainError::NoSession(_) | AgainError::Forgotten(..) => {
            Failure::new(Exit::NotFound, "no-session", error.to_string())
        }
        AgainError::Question(why) => Failure::new(Exit::Usage, "usage", why.clone()),
        AgainError::Store(_) => Failure::new(Exit::Failure, "gateway-evidence", error.to_string()),
        AgainError::Record { .. } => Failure::new(Exit::Failure, "record-unreadable", error.to_string()),
    }
}

#[derive(Serialize)]
struct Replayed {
    session: String,
    records: usize,
    differences: usize,
    decisions: Vec<Compared>,
}

impl Report for Replayed {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for decision in &self.decisions {
            line(out, decision)?;
        }
        match self.differences {
            0 => writeln!(
                out,
                "{} records of {}: every answer would be the same",
                self.records,
                safe(&self.session)
            ),
            count => writeln!(
                out,
                "{} records of {}: {count} answers would differ",
                self.records,
                safe(&self.session)
            ),
        }
    }
}

fn line(out: &mut dyn Write, decision: &Compared) -> io::Result<()> {
    let mark = if decision.differs { "DIFF" } else { "same" };
    let tool = decision.tool.as_deref().unwrap_or(decision.kind);
    writeln!(
        out,
        "{mark}  {:>4}  {}  {}  {}",
        decision.seq,
        decision.at,
        safe(tool),
        safe(&said(&decision.then))
    )?;
    if let (true, Some(now)) = (decision.differs, &decision.now) {
        writeln!(out, "            now {}", safe(&said(now)))?;
        now.because.iter().try_for_each(|why| writeln!(out, "            {why}"))?;
    }
    for (when, advised) in [("", &decision.advised_then), ("now ", &decision.advised_now)] {
        let shown =
            advised.iter().filter(|_| when.is_empty() || decision.advised_then != decision.advised_now);
        shown.into_iter().try_for_each(|advised| {
            writeln!(out, "            {when}enforced, it would be {}", safe(&said(advised)))
        })?;
    }
    decision.note.iter().try_for_each(|note| writeln!(out, "            {}", safe(note)))
}

/// Formats a verdict with its reason.
pub fn said(decided: &Decided) -> String {
    match &decided.reason {
        Some(reason) => format!("{} ({reason})", decided.verdict),
        None => decided.verdict.clone(),
    }
}
