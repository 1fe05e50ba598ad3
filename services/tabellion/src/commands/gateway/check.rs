//! `tabellion gateway check`: checks a configuration against its keys, its log and its servers.

use std::io::{self, Write};

use clap::Args;
use gateway::check::{CheckFinding, CheckOutcome};
use serde::Serialize;

use super::config_file;
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::exposed_settings;
use crate::runtime;
use crate::settings::SettingError;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway check --config gateway.toml")]
pub struct Check {
    /// Check the file only, without requests to the log and the servers
    #[arg(long)]
    offline: bool,
}

impl Check {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let path = config_file::find(context)?;
        let config = config_file::read(&path)?;
        let runtime = runtime::multi_threaded()?;
        let mut checks = gateway::check::without_effect(&config);
        if !self.offline {
            checks.extend(runtime.block_on(gateway::check::check(&config)));
        }
        let policy = |route: &gateway::config::Route| RoutePolicy {
            route: route.path.clone(),
            digest: config.rules(route).policy_digest,
        };
        let result = GatewayCheckResult {
            config: path.display().to_string(),
            issuer: config.issuer.clone(),
            policies: config.routes.iter().map(policy).collect(),
            warnings: exposed_settings::gateway::warnings(&config, Some(&path)),
            checks,
        };
        context.console.result(&result)?;
        match result.exit() {
            Exit::Success => Ok(()),
            exit => Err(Failure::already_printed(exit)),
        }
    }
}

#[derive(Serialize)]
struct GatewayCheckResult {
    config: String,
    issuer: String,
    policies: Vec<RoutePolicy>,
    /// Settings that expose secrets or access; see [`exposed_settings`].
    warnings: Vec<SettingError>,
    checks: Vec<CheckFinding>,
}

#[derive(Serialize)]
struct RoutePolicy {
    route: String,
    digest: String,
}

impl GatewayCheckResult {
    fn exit(&self) -> Exit {
        let any = |outcome| self.checks.iter().any(|finding| finding.outcome == outcome);
        match (any(CheckOutcome::Failed), any(CheckOutcome::NotChecked)) {
            (true, _) => Exit::VerificationFailed,
            (false, true) => Exit::NotVerified,
            (false, false) => Exit::Success,
        }
    }
}

impl Report for GatewayCheckResult {
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
                CheckOutcome::Ok => "ok  ",
                CheckOutcome::Warning => "warn",
                CheckOutcome::NotChecked => "--  ",
                CheckOutcome::Failed => "FAIL",
            };
            writeln!(out, "{mark}  {}   {}", safe(&finding.what), safe(&finding.detail))?;
        }
        Ok(())
    }
}
