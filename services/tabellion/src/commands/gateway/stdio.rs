//! `tabellion gateway stdio`: a gateway for the MCP client that starts it, on standard input and output.

use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use futures::FutureExt;
use gateway::config::Server;
use gateway::{Config, LocalGateway};
use serving::signals::{all_read, stop_signal};

use super::config_file;
use super::dev_mode::{self, WithoutVap};
use super::run::not_started;
use crate::commands::logging::LogLevel;
use crate::commands::spans::{SpanSource, Spans};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::runtime;
use crate::standard_streams;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway stdio --dev -- mcp-server-time")]
pub struct Stdio {
    /// The route to serve [default: the only one]
    #[arg(long, value_name = "PATH", conflicts_with = "dev")]
    route: Option<String>,
    /// A trial next to `serve --dev`, with the server that is named after --
    #[arg(long)]
    dev: bool,
    /// How callers without VAP are treated (dev)
    #[arg(long, value_name = "WHAT", requires = "dev", value_enum, default_value = "commitment")]
    without_vap: WithoutVap,
    /// Start the server even if it could read the gateway's keys
    #[arg(long)]
    unsafe_shared_user: bool,
    /// The server to start, with its arguments (dev)
    #[arg(last = true, value_name = "COMMAND", requires = "dev")]
    command: Vec<String>,
}

impl Stdio {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        gateway::isolation::protect_own_memory()?;
        let runtime = runtime::multi_threaded()?;
        runtime.block_on(self.serve(context))
    }

    async fn serve(self, context: &Context) -> Result<(), Failure> {
        let stop = stop_signal().shared();
        let mut config = self.config(context)?;
        config.unsafe_shared_user = self.unsafe_shared_user;
        let route = self.route(&config)?;
        config.routes.retain(|kept| kept.path == route);
        let spans = Spans::start(SpanSource::Gateway, config.otlp.as_ref())?;
        let _level = LogLevel::at_usual_level(spans.listener(), "warn", &context.console)?;
        let gateway = tokio::select! {
            started = LocalGateway::start(config) => started.map_err(not_started)?,
            () = stop.clone() => return Ok(()),
        };
        let (output, written) = standard_streams::output();
        gateway.run_until(&route, (standard_streams::input(), output), stop.clone()).await?;
        all_read(written, stop).await;
        spans.finish().await;
        Ok(())
    }

    fn config(&self, context: &Context) -> Result<Config, Failure> {
        if !self.dev {
            return config_file::read(&config_file::find(context)?);
        }
        if self.command.is_empty() {
            return Err(Failure::new(Exit::Usage, "usage", "which server? -- COMMAND")
                .hint("tabellion gateway stdio --dev -- mcp-server-time"));
        }
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        dev_mode::config(Server::command(self.command.clone()), None, nowhere, self.without_vap)
    }

    /// Returns the path of the route to serve.
    fn route(&self, config: &Config) -> Result<String, Failure> {
        let paths: Vec<&str> = config.routes.iter().map(|route| route.path.as_str()).collect();
        let route = match (&self.route, paths.as_slice()) {
            (Some(route), _) => config.route(route),
            (None, [only]) => config.route(only),
            (None, _) => None,
        };
        let Some(route) = route else {
            return Err(Failure::new(Exit::Usage, "usage", "which route? --route PATH")
                .fact("routes", paths.join(", ")));
        };
        match &route.oauth {
            None => Ok(route.path.clone()),
            Some(_) => {
                Err(Failure::new(Exit::Usage, "gateway-config", "a client on stdin has no access token")
                    .fact("route", &route.path)
                    .why("its [route.oauth] would refuse every request"))
            }
        }
    }
}
