//! `tabellion gateway replay`: decides a recorded session again, and compares the answers.

use std::io::{self, Write};

use clap::Args;
use display::counted;
use gateway::replay::{self, ReplayError, ReplayedDecision, ReplayedSession, VerdictWords};

use super::config_file;
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::runtime;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway replay --config gateway.toml SESSION")]
pub struct Replay {
    /// The session, by its VAP session_id
    session: String,
}

impl Replay {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let config = config_file::read_or_dev(context)?;
        let runtime = runtime::multi_threaded()?;
        let records = runtime.block_on(replay::records(&config, &self.session)).map_err(failed)?;
        let mut replayed = ReplayedSession::under(&config);
        let decisions = replay::replay(&mut replayed, &records).map_err(failed)?;
        let (session, records) = (self.session, records.len());
        let differences = decisions.iter().filter(|decision| decision.differs).count();
        let undecided = decisions.iter().filter(|decision| decision.now.is_none()).count();
        let json = members! { session, records, differences, undecided, decisions };
        context.console.print(&json, |out| {
            decisions.iter().try_for_each(|decision| line(out, decision))?;
            write!(out, "{} of {}: ", counted(records, "record", "records"), safe(&session))?;
            writeln!(out, "{}", summary(differences, undecided))
        })?;
        match (differences, undecided) {
            (0, 0) => Ok(()),
            (0, _) => Err(Failure::already_printed(Exit::NotVerified)),
            _ => Err(Failure::already_printed(Exit::VerificationFailed)),
        }
    }
}

fn summary(differences: usize, undecided: usize) -> String {
    let differing = counted(differences, "answer", "answers");
    match (differences, undecided) {
        (0, 0) => "every answer would be the same".to_owned(),
        (_, 0) => format!("{differing} would differ"),
        _ => format!("{differing} would differ, {undecided} cannot be decided again"),
    }
}

/// Converts an error of replaying a session.
pub fn failed(error: ReplayError) -> Failure {
    match &error {
        ReplayError::NoSession(_) | ReplayError::Forgotten(..) | ReplayError::NoKey(_) => {
            Failure::new(Exit::NotFound, "no-session", error.to_string())
        }
        ReplayError::Question(why) => Failure::new(Exit::Usage, "usage", why.clone()),
        ReplayError::Store(_) => Failure::new(Exit::Failure, "gateway-evidence", error.to_string()),
        ReplayError::Record { .. } => Failure::new(Exit::Failure, "record-unreadable", error.to_string()),
    }
}

fn line(out: &mut dyn Write, decision: &ReplayedDecision) -> io::Result<()> {
    let mark = match &decision.now {
        None => "none",
        Some(_) if decision.differs => "DIFF",
        Some(_) => "same",
    };
    let tool = decision.tool.as_deref().unwrap_or(decision.kind);
    writeln!(
        out,
        "{mark}  {:>4}  {}  {}  {}",
        decision.seq,
        decision.at,
        safe(tool),
        safe(&verdict_text(&decision.then))
    )?;
    if let (true, Some(now)) = (decision.differs, &decision.now) {
        writeln!(out, "            now {}", safe(&verdict_text(now)))?;
        now.because.iter().try_for_each(|why| writeln!(out, "            {why}"))?;
    }
    for (when, advised) in [("", &decision.advised_then), ("now ", &decision.advised_now)] {
        let shown =
            advised.iter().filter(|_| when.is_empty() || decision.advised_then != decision.advised_now);
        shown.into_iter().try_for_each(|advised| {
            writeln!(out, "            {when}enforced, it would be {}", safe(&verdict_text(advised)))
        })?;
    }
    decision.note.iter().try_for_each(|note| writeln!(out, "            {}", safe(note)))
}

/// Formats a verdict with its reason.
pub fn verdict_text(decided: &VerdictWords) -> String {
    match &decided.reason {
        Some(reason) => format!("{} ({reason})", decided.verdict),
        None => decided.verdict.clone(),
    }
}
