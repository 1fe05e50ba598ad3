//! `tabellion gateway explain`: explains how the gateway would decide about a call.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use gateway::Config;
use gateway::replay::{self, CommitmentResult, Explained, Hypothesis, ReplayedSession};
use jiff::Timestamp;
use serde::Serialize;

use super::replay::{failed, verdict_text};
use super::{config_file, tools};
use crate::console::{Exit, Failure, Report, files, safe};
use crate::context::Context;
use crate::runtime;

#[derive(Debug, Args)]
#[command(
    before_help = "example:  tabellion gateway explain --commitment commitment.json --tool payments.send"
)]
pub struct Explain {
    /// The tool
    #[arg(long, value_name = "NAME")]
    tool: String,
    /// The call's arguments: a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// A recorded session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// A Scope Commitment for a new session, instead of --session
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
        let mut replayed = ReplayedSession::under(&config);
        let session = self.begin(&config, &mut replayed)?;
        let route = self.route(&config, &replayed)?;
        let envelope = self.envelope.as_deref().map(files::read_text).transpose()?;
        let fault = gateway::tools::fault(&config, &route, &self.tool, &self.arguments);
        let fault = runtime::multi_threaded()?.block_on(fault).map_err(tools::failed)?;
        let call = Hypothesis {
            route: &route,
            session: session.as_deref(),
            tool: &self.tool,
            arguments: &self.arguments,
            envelope: envelope.as_deref(),
            tool_fault: fault.as_ref(),
            now: Timestamp::now(),
        };
        let explained = replay::explain(&mut replayed, &call).map_err(failed)?;
        context.console.result(&ReasonExplanation { route: &route, session, tool: &self.tool, explained })
    }

    /// Replays a recorded session, or begins a new one with the commitment.
    fn begin(&self, config: &Config, replayed: &mut ReplayedSession) -> Result<Option<String>, Failure> {
        if let Some(session) = &self.session {
            let runtime = runtime::multi_threaded()?;
            let records = runtime.block_on(replay::records(config, session)).map_err(failed)?;
            replay::replay(replayed, &records).map_err(failed)?;
            return Ok(Some(session.clone()));
        }
        let Some(path) = &self.commitment else { return Ok(None) };
        let route = self.route(config, replayed)?;
        match replay::begin(replayed, &route, &files::read_text(path)?, Timestamp::now()).map_err(failed)? {
            CommitmentResult::Session(session) => Ok(Some(session)),
            CommitmentResult::Denied(decided) => {
                let what = format!("the commitment itself would be {}", verdict_text(&decided));
                let failure = Failure::new(Exit::Refused, "commitment-denied", what);
                Err(match decided.because {
                    Some(because) => failure.why(because),
                    None => failure,
                })
            }
        }
    }

    fn route(&self, config: &Config, replayed: &ReplayedSession) -> Result<String, Failure> {
        let first = || config.routes.first().map(|route| route.path.clone());
        let of_session = || replayed.owner().map(|(route, _)| route.clone());
        self.route
            .clone()
            .or_else(of_session)
            .or_else(first)
            .ok_or_else(|| Failure::new(Exit::Usage, "usage", "the configuration has no route"))
    }
}

#[derive(Serialize)]
struct ReasonExplanation<'a> {
    route: &'a str,
    session: Option<String>,
    tool: &'a str,
    #[serde(flatten)]
    explained: Explained,
}

impl Report for ReasonExplanation<'_> {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let explained = &self.explained;
        writeln!(
            out,
            "{} on {}: {}",
            safe(self.tool),
            safe(self.route),
            safe(&verdict_text(&explained.decided))
        )?;
        explained.decided.because.iter().try_for_each(|because| writeln!(out, "  {because}"))?;
        explained.advised.iter().try_for_each(|advised| {
            writeln!(out, "  enforced  it would be {}", safe(&verdict_text(advised)))
        })?;
        explained.remedy.iter().try_for_each(|remedy| writeln!(out, "  {remedy}"))?;
        if explained.presumes_chain {
            writeln!(
                out,
                "  chain     taken as authorizing the call; tabellion roa verify --call decides about it"
            )?;
        }
        explained.question.iter().try_for_each(|question| writeln!(out, "  asked     {}", safe(question)))?;
        writeln!(out, "  checks    {}", safe(&explained.checks.join(", ")))?;
        if explained.meters.as_object().is_some_and(|meters| !meters.is_empty()) {
            writeln!(out, "  meters    {}", safe(&explained.meters.to_string()))?;
        }
        explained.policy_digest.iter().try_for_each(|digest| writeln!(out, "  rules     {digest}"))
    }
}
