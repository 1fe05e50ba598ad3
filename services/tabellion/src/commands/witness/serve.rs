//! `tabellion witness serve`: runs a witness, and creates its key at the first start.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use display::counted;
use serving::collector;
use serving::signals::{hangups, stop_signal};
use tlog::key::KeyName;
use url::Url;
use witness::{Config, StartError, StateError, Witness, WitnessKeyError};

use crate::commands::logging::LogLevel;
use crate::commands::spans::{SpanSource, Spans};
use crate::console::{Exit, Failure, members, safe};
use crate::context::Context;
use crate::runtime;

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion witness serve --state w1 --name w1.example --logs logs.txt")]
pub struct Serve {
    /// The folder for its state and key; never start from a copy
    #[arg(long, value_name = "FOLDER")]
    state: PathBuf,
    /// The log list (C2SP tlog-list); reloads on SIGHUP
    #[arg(long, value_name = "FILE")]
    logs: PathBuf,
    /// Its permanent name; needed at the first start
    #[arg(long)]
    name: Option<KeyName>,
    /// The address for logs and monitors
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7392")]
    listen: SocketAddr,
    /// The address for metrics and health
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,
    /// Send spans to this OpenTelemetry collector
    #[arg(long, value_name = "URL", value_parser = collector::parse)]
    otlp: Option<Url>,
    /// The key file, created at the first start [default: FOLDER/key.pem]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Confirm that this key has never cosigned
    #[arg(long)]
    unused_key: bool,
    /// Confirm that the clock was ahead: times may decrease once
    #[arg(long)]
    clock_was_ahead: bool,
}

impl Serve {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = runtime::multi_threaded()?;
        runtime.block_on(self.serve(context))
    }

    async fn serve(self, context: &Context) -> Result<(), Failure> {
        // From here on, SIGHUP does not terminate the process.
        let reread = hangups()?;
        let mut stop = std::pin::pin!(stop_signal());
        let spans = Spans::start(SpanSource::Witness, self.otlp.as_ref())?;
        let _level = LogLevel::at_usual_level(spans.listener(), "info", &context.console)?;
        let config = Config {
            listen: self.listen,
            admin_listen: self.admin_listen,
            state: self.state,
            key: self.key,
            name: self.name,
            unused_key: self.unused_key,
            clock_was_ahead: self.clock_was_ahead,
            logs: self.logs,
        };
        let witness = tokio::select! {
            started = Witness::start(config) => started.map_err(not_started)?,
            () = &mut stop => return Ok(()),
        };
        let (listen, key, logs) = (witness.address().to_string(), witness.key().to_string(), witness.logs());
        let admin = witness.admin_address().map(|address| address.to_string());
        context.console.print(&members! { listen, admin, key, logs }, |out| {
            let logs = counted(logs, "log", "logs");
            writeln!(out, "witnessing {logs} at http://{listen}\nkey        {}", safe(&key))
        })?;
        let ended = witness.run_until(reread, stop).await;
        spans.finish().await;
        ended.map_err(|lost| {
            Failure::new(Exit::Failure, "witness-in-doubt", "the witness stopped")
                .fact("because", lost.to_string())
        })
    }
}

fn not_started(error: StartError) -> Failure {
    let failure =
        |exit, code| Failure::new(exit, code, "the witness did not start").fact("because", error.to_string());
    match &error {
        StartError::State(StateError::Locked(_)) => failure(Exit::Failure, "witness-in-use")
            .why("two witnesses that share a key and a state do not know each other's cosignatures"),
        StartError::State(StateError::Damaged { .. } | StateError::Gone(_) | StateError::Forgotten(_))
        | StartError::Key(WitnessKeyError::StateWithoutName(_)) => {
            failure(Exit::Failure, "witness-state-damaged")
                .why("a witness without its state can be made to cosign a second history")
                .hint("start a new witness, with a new name and a new folder")
        }
        StartError::Key(WitnessKeyError::WithoutState(_)) => failure(Exit::Failure, "witness-state-missing")
            .why("the earlier cosignatures of this key are not known here: it could be made to cosign a second history")
            .hint("restore the state; --unused-key only if the key never cosigned"),
        StartError::Key(WitnessKeyError::NoName) => {
            failure(Exit::Usage, "usage").hint("add --name w1.example, with a domain of yours")
        }
        StartError::Key(WitnessKeyError::OtherName { .. }) => failure(Exit::Usage, "usage"),
        StartError::Key(WitnessKeyError::Missing { .. } | WitnessKeyError::Other { .. }) => {
            failure(Exit::Failure, "witness-key-missing")
        }
        StartError::Key(WitnessKeyError::Open(_)) => failure(Exit::Failure, "key-not-private"),
        StartError::Key(WitnessKeyError::Unusable { .. }) => failure(Exit::Failure, "key-unusable"),
        StartError::List(_) => failure(Exit::Failure, "witness-list"),
        StartError::Listen(bind) => failure(Exit::Failure, bind.code()),
        _ => failure(Exit::Failure, "witness-not-started"),
    }
}
