//! `tabellion witness serve`: runs a witness, and creates its key at the first start.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use tlog::key::KeyName;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use transparency::stop_signal;
use witness::{Config, KeyError, StartError, StateError, Witness};

use crate::cli::Context;
use crate::commands::serve::logging::LogLevel;
use crate::console::{Exit, Failure, Report, safe};

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion witness serve --state w1 --name w1.example --logs logs.txt")]
pub struct Serve {
    /// What it has seen, and its key; never start from a copy
    #[arg(long, value_name = "FOLDER")]
    state: PathBuf,
    /// Which logs it witnesses, a C2SP tlog-list; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    logs: PathBuf,
    /// Its name: given at the first start, the same ever after
    #[arg(long)]
    name: Option<KeyName>,
    /// Where logs and monitors come
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7392")]
    listen: SocketAddr,
    /// Where its metrics and health are
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,
    /// Its key, if not FOLDER/key.pem; made at the first start
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// That key has never cosigned, the folder is new
    #[arg(long)]
    unused_key: bool,
    /// Its clock was ahead: times may go back, once
    #[arg(long)]
    clock_was_ahead: bool,
}

impl Serve {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.serve(context))
    }

    async fn serve(self, context: &Context) -> Result<(), Failure> {
        // From here on, SIGHUP does not terminate the process.
        let mut hangups = signal(SignalKind::hangup())?;
        let mut stop = std::pin::pin!(stop_signal());
        let _level = LogLevel::of_environment("info", &context.console)?;
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
        context.console.result(&Witnessing::of(&witness))?;
        let reread = Arc::new(Notify::new());
        let heard = reread.clone();
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                heard.notify_one();
            }
        });
        witness.run_until(reread, stop).await.map_err(|lost| {
            Failure::new(Exit::Failure, "witness-in-doubt", "the witness stopped")
                .fact("because", lost.to_string())
        })
    }
}

/// The addresses of a running witness, and its verifier key for relying parties.
#[derive(Serialize)]
struct Witnessing {
    listen: String,
    admin: Option<String>,
    key: String,
    logs: usize,
}

impl Witnessing {
    fn of(witness: &Witness) -> Self {
        Self {
            listen: witness.address().to_string(),
            admin: witness.admin_address().map(|address| address.to_string()),
            key: witness.key().to_string(),
            logs: witness.logs(),
        }
    }
}

impl Report for Witnessing {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let logs = if self.logs == 1 { "1 log".to_owned() } else { format!("{} logs", self.logs) };
        writeln!(out, "witnessing {logs} at http://{}", self.listen)?;
        writeln!(out, "key        {}", safe(&self.key))
    }
}

fn not_started(error: StartError) -> Failure {
    let failure =
        |exit, code| Failure::new(exit, code, "the witness did not start").fact("because", error.to_string());
    match &error {
        StartError::State(StateError::Locked(_)) => failure(Exit::Failure, "witness-in-use")
            .why("two witnesses that share a key and a state would cosign what the other has not seen"),
        StartError::State(StateError::Damaged { .. } | StateError::Gone(_) | StateError::Forgotten(_))
        | StartError::Key(KeyError::StateWithoutName(_)) => failure(Exit::Failure, "witness-state-damaged")
            .why("a witness that has forgotten what it saw can be made to cosign a second history")
            .hint("start a new witness, with a new name and a new folder"),
        StartError::Key(KeyError::WithoutState(_)) => failure(Exit::Failure, "witness-state-missing")
            .why("what this key has cosigned is not known here: it could be made to cosign a second history")
            .hint("bring the state back; --unused-key only if it never cosigned"),
        StartError::Key(KeyError::NoName) => {
            failure(Exit::Usage, "usage").hint("add --name w1.example, with a domain of yours")
        }
        StartError::Key(KeyError::OtherName { .. }) => failure(Exit::Usage, "usage"),
        StartError::Key(KeyError::Missing { .. } | KeyError::Other { .. }) => {
            failure(Exit::Failure, "witness-key-missing")
        }
        StartError::Key(KeyError::Open(_)) => failure(Exit::Failure, "key-not-private"),
        StartError::Key(KeyError::Unusable { .. }) => failure(Exit::Failure, "key-unusable"),
        StartError::List(_) => failure(Exit::Failure, "witness-list"),
        StartError::Listen { error: io, .. } if io.kind() == ErrorKind::AddrInUse => {
            failure(Exit::Failure, "address-in-use")
        }
        StartError::Listen { .. } => failure(Exit::Failure, "cannot-listen"),
        _ => failure(Exit::Failure, "witness-not-started"),
    }
}
