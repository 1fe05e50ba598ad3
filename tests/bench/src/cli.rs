//! Command line of the bench.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Measures registrations a second, their latency and their cost, against this machine's limits.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub struct Cli {
    /// Rounds; the report gives medians
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Length of each measurement
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Connections that each wait for an answer before they ask again
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
    pub clients: Vec<usize>,
    /// What the log is kept in
    #[arg(long, value_delimiter = ',', default_values = ["sqlite", "postgres"])]
    pub databases: Vec<Kind>,
    /// A PostgreSQL server whose user may create databases; one is started and thrown away unless given
    #[arg(long, value_name = "URL")]
    pub postgres: Option<String>,
    /// The program under test [default: `tabellion` beside this one]
    #[arg(long, value_name = "FILE")]
    pub tabellion: Option<PathBuf>,
    /// Where databases are put: on the disk that is to be measured
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Milliseconds for which a busy log waits to fill a batch
    #[arg(long, default_value_t = 2)]
    pub linger_ms: u64,
    /// Length of a statement
    #[arg(long, default_value_t = 1024)]
    pub bytes: usize,
    /// Another service that takes the same requests, measured in turn: HOST:PORT/PATH
    #[arg(long, value_name = "ADDRESS")]
    pub peer: Option<Peer>,
    /// Its processes, for their CPU time
    #[arg(long, value_delimiter = ',', value_name = "PID")]
    pub peer_pids: Vec<u32>,
    /// Print everything that was measured as JSON
    #[arg(long)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What the bench starts of itself.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// An HTTP server that reads a body and answers with some bytes
    #[command(hide = true)]
    Echo { port: u16 },
}

/// What a log is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// A server.
    Postgres,
}

impl Kind {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// Registration endpoint of another service, for comparison.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Address of the service.
    pub address: SocketAddr,
    /// Path of the `POST` request.
    pub path: String,
}

impl std::str::FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, path) = text.split_once('/').ok_or("give HOST:PORT/PATH")?;
        let address = address.parse().map_err(|error| format!("{address}: {error}"))?;
        Ok(Self { address, path: format!("/{path}") })
    }
}
