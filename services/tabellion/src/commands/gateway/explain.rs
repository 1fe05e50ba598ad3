//! `tabellion gateway explain`: explains how the gateway would decide about a call.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use gateway::Config;
use gateway::again::{self, Again, Began, Explained, Hypothesis};
use jiff::Timestamp;
use serde::Serialize;

use super::replay::{failed, said};
use super::{config_file, tools};
use crate::cli::Context;
use crate::console::{Exit, Failure, Report, files, safe};

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion gateway explain --commitment commitment.json --tool payments.send"
)]
pub struct Explain {
    /// The tool
    #[arg(long, value_name = "NAME")]
    tool: String,
    /// Its arguments: a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// A session, as the gateway recorded it
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// A Scope Commitment to begin a session with, instead
    #[arg(long, value_name = "FILE", conflicts_with = "session")]
    commitment: Option<PathBuf>,
    /// The Intent Envelope [default: one that declares the call]
    #[arg(long, value_name = "FILE")]
    envelope: Option<PathBuf>,
    /// The route [default: that of the session, or the first one]
    #[arg(long, value_name = "PATH")]
    route: Option<String>,
}

impl Explain {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let config = config_file::read_or_dev(context)?;
        let mut lived = Again::under(&config);
        let session = self.begin(&config, &mut lived)?;
        let route = self.route(&config, &lived)?;
        let envelope = self.envelope.as_deref().map(files::read_text).transpose()?;
        let fault = gateway::tools::fault(&config, (&route, &self.tool), &self.arguments);
        let fault = super::runtime()?.block_on(fault).map_err(tools::failed)?;
        let call = Hypothesis {
            route: &route,
            session: session.as_deref(),
            tool: &self.tool,
            arguments: &self.arguments,
            envelope: envelope.as_deref(),
            tool_fault: fault.as_ref(),
            now: Timestamp::now(),
        };
        let explained = again::explain(&mut lived, &call).map_err(failed)?;
        context.console.result(&Told { route: &route, session, tool: &self.tool, explained })
    }

    /// Replays a recorded session, or begins a new one with the commitment.
    fn begin(&self, config: &Config, lived: &mut Again) -> Result<Option<String>, Failure> {
        if let Some(session) = &self.session {
            let runtime = super::runtime()?;
            let records = runtime.block_on(again::records(config, session)).map_err(failed)?;
            again::replay(lived, &records).map_err(failed)?;
            return Ok(Some(session.clone()));
        }
        let Some(path) = &self.commitment else { return Ok(None) };
        let route = self.route(config, lived)?;
        match again::begin(lived, &route, &files::read_text(path)?, Timestamp::now()).map_err(failed)? {
            Began::Session(session) => Ok(Some(session)),
            Began::Denied(decided) => {
                let what = format!("the commitment itself would be {}", said(&decided));
                let failure = Failure::new(Exit::Refused, "commitment-denied", what);
                Err(match decided.because {
                    Some(because) => failure.why(because),
                    None => failure,
                })
            }
        }
    }

    fn route(&self, config: &Config, lived: &Again) -> Result<String, Failure> {
        let first = || config.routes.first().map(|route| route.path.clone());
        let of_session = || lived.owner().map(|(route, _)| route.clone());
        self.route
            .clone()
            .or_else(of_session)
            .or_else(first)
            .ok_or_else(|| Failure::new(Exit::Usage, "usage", "the configuration has no route"))
    }
}

#[derive(Serialize)]
struct Told<'a> {
    route: &'a str,
    session: Option<String>,
    tool: &'a str,
    #[serde(flatten)]
    explained: Explained,
}

impl Report for Told<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let told = &self.explained;
        writeln!(out, "{} on {}: {}", safe(self.tool), safe(self.route), safe(&said(&told.decided)))?;
        told.decided.because.iter().try_for_each(|because| writeln!(out, "  {because}"))?;
        told.advised
            .iter()
            .try_for_each(|advised| writeln!(out, "  enforced  it would be {}", safe(&said(advised))))?;
        told.remedy.iter().try_for_each(|remedy| writeln!(out, "  {remedy}"))?;
        told.question.iter().try_for_each(|question| writeln!(out, "  asked     {}", safe(question)))?;
        writeln!(out, "  checks    {}", safe(&told.checks.join(", ")))?;
        if told.meters.as_object().is_some_and(|meters| !meters.is_empty()) {
            writeln!(out, "  meters    {}", safe(&told.meters.to_string()))?;
        }
        told.policy_digest.iter().try_for_each(|digest| writeln!(out, "  rules     {digest}"))
    }
}
