//! `tabellion gateway check`: checks a configuration against its keys, its log and its servers.

use std::io::{self, Write};

use clap::Args;
use gateway::check::{Finding, Outcome};
use serde::Serialize;

use super::config_file;
use crate::cli::Context;
use crate::console::{Exit, Failure, Report, safe};
use crate::exposure;
use crate::settings::Mistake;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway check --config gateway.toml")]
pub struct Check {
    /// The file alone: neither the log nor the servers are asked
    #[arg(long)]
    offline: bool,
}

impl Check {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let path = config_file::find(context)?;
        let config = config_file::read(&path)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let mut checks = gateway::check::without_effect(&config);
        if !self.offline {
            checks.extend(runtime.block_on(gateway::check::check(&config)));
        }
        let policy = |route: &gateway::config::Route| Policy {
            route: route.path.clone(),
            digest: config.rules(route).policy_digest,
        };
        let told = Checked {
            config: path.display().to_string(),
            issuer: config.issuer.clone(),
            policies: config.routes.iter().map(policy).collect(),
            warnings: exposure::gateway::warnings(&config, Some(&path)),
            checks,
        };
        context.console.result(&told)?;
        match told.exit() {
            Exit::Success => Ok(()),
            exit => Err(Failure::told(exit)),
        }
    }
}

#[derive(Serialize)]
struct Checked {
    config: String,
    issuer: String,
    policies: Vec<Policy>,
    /// Settings that expose secrets or access; see [`exposure`].
    warnings: Vec<Mistake>,
    checks: Vec<Finding>,
}

#[derive(Serialize)]
struct Policy {
    route: String,
    digest: String,
}

impl Checked {
    fn exit(&self) -> Exit {
        let any = |outcome| self.checks.iter().any(|finding| finding.outcome == outcome);
        match (any(Outcome::Failed), any(Outcome::NotChecked)) {
            (true, _) => Exit::VerificationFailed,
            (false, true) => Exit::NotVerified,
            (false, false) => Exit::Success,
        }
    }
}

impl Report for Checked {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "ok    file {}   {}", safe(&self.config), safe(&self.issuer))?;
        for policy in &self.policies {
            writeln!(out, "ok    rules {}   {}", safe(&policy.route), policy.digest)?;
        }
        for warning in &self.warnings {
            writeln!(out, "warn  {}   {}", safe(&warning.key), safe(&warning.what))?;
        }
        for finding in &self.checks {
            let mark = match finding.outcome {
                Outcome::Ok => "ok  ",
                Outcome::Warning => "warn",
                Outcome::NotChecked => "--  ",
                Outcome::Failed => "FAIL",
            };
            writeln!(out, "{mark}  {}   {}", safe(&finding.what), safe(&finding.detail))?;
        }
        Ok(())
    }
}
