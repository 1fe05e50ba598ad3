//! `tabellion doctor`: looks at everything that a log or a client on this computer needs, and names the command that
//! helps where something is wrong. Nothing is changed.
//!
//! Not here: the check of the stored log against what was signed (`log fsck`), and of other logs (`monitor`).

mod finding;
mod local;
mod remote;

use std::io::{self, Write};

use clap::Args;
use owo_colors::OwoColorize;
use serde::Serialize;

use self::finding::{Finding, FindingState};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::service::ServiceArgs;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion doctor --config /etc/tabellion/tabellion.toml")]
pub struct Doctor {
    #[command(flatten)]
    service: ServiceArgs,
}

impl Doctor {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let remote = remote::check(context, &self.service);
        let local = local::check(context, remote.served.as_ref());
        let findings: Vec<Finding> = local.into_iter().chain(remote.findings).collect();
        let exit = exit_of(&findings);
        context.console.result(&Findings { healthy: exit.is_none(), findings })?;
        match exit {
            None => Ok(()),
            Some(exit) => Err(Failure::already_printed(exit)),
        }
    }
}

/// Returns the exit code: that of a log that contradicts itself, otherwise that of the first failed check.
fn exit_of(findings: &[Finding]) -> Option<Exit> {
    let exits = || findings.iter().filter_map(|finding| finding.exit);
    exits().find(|exit| *exit == Exit::LogMisbehaviour).or_else(|| exits().next())
}

#[derive(Serialize)]
struct Findings {
    /// False if a check failed. Warnings do not count.
    healthy: bool,
    findings: Vec<Finding>,
}

impl Report for Findings {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        for Finding { check, state, detail, fix, .. } in &self.findings {
            let state = match state {
                FindingState::Ok => format!("{}     ", "ok".green()),
                FindingState::Warning => format!("{}", "warning".yellow()),
                FindingState::Failed => format!("{} ", "failed".red()),
                FindingState::Skipped => "--     ".to_owned(),
            };
            writeln!(out, "{state}  {check:10}  {}", safe(detail))?;
            if let Some(fix) = fix {
                writeln!(out, "{:21}try: {}", "", safe(fix))?;
            }
        }
        Ok(())
    }
}
