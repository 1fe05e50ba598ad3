//! Measurement rounds. Compared values are measured one after the other in each round, so that other load on the
//! machine affects all of them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;

use crate::cli::{Cli, Kind};
use crate::database::Database;
use crate::echo::Echo;
use crate::load::{self, Load, Plan};
use crate::postgres::Server;
use crate::raw::{self, Raw};
use crate::service::{Counters, Service};
use crate::statements::{self, Statements};

/// Number of statements signed per second of load: more than this machine can register.
const PER_SECOND: usize = 20_000;
/// Maximum number of requests of the load with one client, and its maximum duration.
const ALONE: usize = 10_000;
const ALONE_FOR: Duration = Duration::from_secs(2);

/// All results of a run.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Length of one statement in bytes.
    pub statement_bytes: usize,
    /// CPU microseconds to parse a statement and verify its signature.
    pub check_us: f64,
    /// Results for each database.
    pub databases: Vec<Measured>,
}

/// Results for one database, in [`Results::databases`].
#[derive(Debug, Serialize)]
pub struct Measured {
    /// Name of the kind of database.
    pub database: &'static str,
    /// Results of each round.
    pub rounds: Vec<Round>,
}

/// Results of one round, in [`Measured::rounds`].
#[derive(Debug, Serialize)]
pub struct Round {
    /// Limits of the machine.
    #[serde(flatten)]
    pub limits: Limits,
    /// Results of the log.
    #[serde(flatten)]
    pub log: Log,
}

/// Measurements of the parts alone, and of another service.
#[derive(Debug, Serialize)]
pub struct Limits {
    /// Raw inserts into the database, from [`raw::measure`].
    pub raw: Raw,
    /// HTTP echo ([`Echo`]), for each number of clients.
    pub echo: Vec<Load>,
    /// The other service (`--peer`), for each number of clients.
    pub peer: Vec<Load>,
}

/// Measurements of one log, starting empty.
#[derive(Debug, Serialize)]
pub struct Log {
    /// Registrations by one client.
    pub alone: Load,
    /// Registrations, for each number of clients.
    pub fresh: Vec<Load>,
    /// Repeated registration of the statements of the last load.
    pub again: Load,
    /// Size of the write-ahead log per registration in bytes; `None` for SQLite.
    pub wal_bytes: Option<f64>,
    /// Number of committed batches per registration, with the last number of clients.
    pub batches_per_entry: f64,
    /// Number of signatures over heads per batch: 2 if both kinds sign each batch once.
    pub signatures_per_batch: f64,
}

/// Runs all rounds.
pub async fn run(cli: &Cli) -> anyhow::Result<Results> {
    ensure!(!cli.clients.is_empty() && cli.rounds > 0 && cli.seconds > 0, "there is nothing to measure");
    let folder = match &cli.folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    }?;
    let bench = Bench::prepare(cli, folder.path()).await?;
    let mut databases: Vec<_> = bench
        .databases
        .iter()
        .map(|database| Measured { database: database.kind().name(), rounds: Vec::new() })
        .collect();
    for number in 0..cli.rounds {
        for (position, database) in bench.databases.iter().enumerate() {
            let turn = number * bench.databases.len() + position;
            let round = bench.round(database, turn).await.with_context(|| database.kind().name())?;
            let best = round.log.fresh.iter().map(|load| load.per_second).fold(0.0, f64::max);
            eprintln!(
                "round {} of {}, {}: {best:.0} registrations/s",
                number + 1,
                cli.rounds,
                database.kind().name()
            );
            databases[position].rounds.push(round);
        }
    }
    let check_us = statements::check_cost(&bench.statements)?;
    Ok(Results { statement_bytes: bench.statements.length(), check_us, databases })
}

/// State shared by all rounds.
struct Bench<'a> {
    cli: &'a Cli,
    folder: &'a Path,
    program: PathBuf,
    databases: Vec<Database>,
    statements: Statements,
}

impl<'a> Bench<'a> {
    async fn prepare(cli: &'a Cli, folder: &'a Path) -> anyhow::Result<Self> {
        let program = match &cli.tabellion {
            Some(program) => program.clone(),
            None => std::env::current_exe()?.with_file_name("tabellion"),
        };
        ensure!(program.is_file(), "{} is not there: cargo build --release -p tabellion", program.display());
        // A database server that runs as another user must be able to reach its folder.
        rustix::fs::chmod(folder, rustix::fs::Mode::from_raw_mode(0o711))?;
        let mut databases = Vec::new();
        for kind in &cli.databases {
            databases.push(match (kind, &cli.postgres) {
                (Kind::Sqlite, _) => Database::Sqlite(folder.to_owned()),
                (Kind::Postgres, Some(url)) => Database::Postgres(Server::given(url).await?),
                (Kind::Postgres, None) => Database::Postgres(Server::start(folder.join("postgres")).await?),
            });
        }
        let statements = Statements::sign(0..needed(cli), cli.bytes, "/entries")?;
        Ok(Self { cli, folder, program, databases, statements })
    }

    async fn round(&self, database: &Database, turn: usize) -> anyhow::Result<Round> {
        let raw = raw::measure(database, &self.statements, self.length()).await?;
        let limits = Limits { raw, echo: self.echo().await?, peer: self.peer(turn).await? };
        let name = format!("log{turn}");
        let db = database.make(&name).await?;
        let service =
            Service::start(&self.program, &self.folder.join(&name), &db, self.cli.linger_ms).await?;
        let log = self.register(&service, database).await?;
        service.stop().await?;
        database.drop(&name).await?;
        Ok(Round { limits, log })
    }

    /// Measures one log: one client, then each number of clients, then the statements of the last load again.
    async fn register(&self, service: &Service, database: &Database) -> anyhow::Result<Log> {
        let (server, pids) = ([service.pid()], database.pids());
        let load = async |clients, first, count, length| {
            let requests = self.statements.requests();
            let (server, database) = (&server[..], &pids[..]);
            load::run(Plan {
                address: service.address,
                requests,
                first,
                count,
                clients,
                length,
                server,
                database,
            })
            .await
        };
        let alone = load(1, 0, ALONE, self.length().min(ALONE_FOR)).await?;
        let (mut sent, mut last, mut fresh) = (alone.sent, 0, Vec::new());
        let wal = database.wal_bytes().await?;
        let mut counted = Counters::default();
        for clients in &self.cli.clients {
            (last, counted) = (sent, service.counters().await?);
            fresh.push(load(*clients, sent, PER_SECOND * self.cli.seconds as usize, self.length()).await?);
            sent += fresh.last().map_or(0, |load| load.sent);
        }
        let now = service.counters().await?;
        let grown = database.wal_bytes().await?.zip(wal).map(|(now, before)| now - before);
        let again = load(*self.cli.clients.last().unwrap_or(&1), last, sent - last, self.length()).await?;
        let batches = now.batches - counted.batches;
        Ok(Log {
            wal_bytes: grown.map(|bytes| bytes / fresh.iter().map(|load| load.done as f64).sum::<f64>()),
            batches_per_entry: batches / fresh.last().map_or(0, |load| load.done) as f64,
            signatures_per_batch: (now.signatures - counted.signatures) / batches,
            alone,
            again,
            fresh,
        })
    }

    async fn echo(&self) -> anyhow::Result<Vec<Load>> {
        let echo = Echo::start().await?;
        self.loads(echo.address, self.statements.requests(), &[echo.pid()]).await
    }

    /// Measures the other service. It keeps statements from earlier rounds, so that each round signs new ones.
    async fn peer(&self, turn: usize) -> anyhow::Result<Vec<Load>> {
        let Some(peer) = &self.cli.peer else { return Ok(Vec::new()) };
        let numbers = turn * needed(self.cli)..(turn + 1) * needed(self.cli);
        let statements = Statements::sign(numbers, self.cli.bytes, &peer.path)?;
        self.loads(peer.address, statements.requests(), &self.cli.peer_pids).await
    }

    async fn loads(
        &self,
        address: SocketAddr,
        requests: &Arc<Vec<Vec<u8>>>,
        server: &[u32],
    ) -> anyhow::Result<Vec<Load>> {
        let (mut first, mut loads, length) = (0, Vec::new(), self.length());
        for clients in self.cli.clients.iter().copied() {
            let plan = Plan {
                address,
                requests,
                first,
                count: requests.len(),
                clients,
                length,
                server,
                database: &[],
            };
            let load = load::run(plan).await?;
            first = (first + load.sent) % requests.len();
            loads.push(load);
        }
        Ok(loads)
    }

    fn length(&self) -> Duration {
        Duration::from_secs(self.cli.seconds)
    }
}

/// Returns the number of statements needed for one round.
fn needed(cli: &Cli) -> usize {
    ALONE + PER_SECOND * cli.seconds as usize * cli.clients.len()
}
