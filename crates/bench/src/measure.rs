//! Measurement rounds. Compared values are measured one after the other in each round, so that other load on the
//! machine affects all of them.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::database::DatabaseHost;
use crate::existing::database_of;
use crate::limits::RAW_ROWS;
use crate::log_round::LogUnderTest;
use crate::machine;
use crate::numbers::Numbers;
use crate::options::{BenchDatabase, BenchOptions};
use crate::result::{BenchResult, DatabaseResult, LogResult, Round, Settings};
use crate::service::{ENTRIES, NewLog, RunningService, create_log};
use crate::statements::{self, Statements};
use crate::yardsticks::YardstickPlan;

/// Measures all databases, round by round. `progress` receives a line after each round.
///
/// # Errors
/// If the options contradict each other, a process cannot be started, or a load has no successful request.
pub async fn measure(
    options: &BenchOptions,
    mut progress: impl FnMut(String),
) -> anyhow::Result<BenchResult> {
    check(options)?;
    let machine = machine::describe();
    let bench = Bench::prepare(options).await?;
    let mut results: Vec<DatabaseResult> = Vec::new();
    for subject in &bench.subjects {
        results.push(DatabaseResult { database: subject.name().to_owned(), rounds: Vec::new() });
    }
    for number in 0..options.rounds {
        for (subject, result) in bench.subjects.iter().zip(&mut results) {
            let round = bench.round(subject, number).await.with_context(|| subject.name().to_owned())?;
            let best = round.log.closed.iter().map(|load| load.per_second).fold(0.0, f64::max);
            let of = options.rounds;
            progress(format!("round {} of {of}, {}: {best:.0} registrations/s", number + 1, subject.name()));
            result.rounds.push(round);
        }
    }
    let check_us = statements::check_cost(&bench.sample)?;
    Ok(BenchResult::new(machine, bench.settings(), check_us, results))
}

/// Refuses options that cannot be measured.
fn check(options: &BenchOptions) -> anyhow::Result<()> {
    let measured = options.rounds > 0 && !options.length.is_zero() && options.processes > 0;
    ensure!(measured, "rounds, seconds and processes are at least 1");
    ensure!(
        !options.clients.is_empty() && !options.clients.contains(&0),
        "each number of clients is at least 1"
    );
    ensure!(options.clients.is_sorted(), "the numbers of clients are given in ascending order");
    for name in &options.types {
        ensure!(statements::is_content_type(name), "no statements of the content type {name:?} can be made");
    }
    ensure!(!options.types.is_empty(), "a content type is missing");
    if options.processes > 1 {
        let is_postgres = |database: &BenchDatabase| matches!(database, BenchDatabase::Postgres(_));
        let shared = match &options.existing {
            Some(log) => is_postgres(&database_of(log)?),
            None => options.databases.iter().all(is_postgres),
        };
        ensure!(shared, "several processes need a PostgreSQL database; SQLite has one process");
    }
    Ok(())
}

/// State shared by all rounds.
struct Bench<'a> {
    options: &'a BenchOptions,
    folder: TempDir,
    subjects: Vec<Subject>,
    numbers: Numbers,
    /// Some statements of the first content type.
    sample: Statements,
}

/// The logs that are measured in turn.
enum Subject {
    /// A new log in each round.
    New(DatabaseHost),
    /// One log that exists already.
    Existing { host: DatabaseHost, folder: PathBuf },
}

impl Subject {
    fn host(&self) -> &DatabaseHost {
        match self {
            Self::New(host) | Self::Existing { host, .. } => host,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::New(host) => host.name(),
            Self::Existing { .. } => "existing",
        }
    }
}

impl<'a> Bench<'a> {
    async fn prepare(options: &'a BenchOptions) -> anyhow::Result<Self> {
        let folder = match &options.folder {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        }?;
        let subjects = match &options.existing {
            Some(log) => vec![existing(log).await?],
            None => new_logs(options, folder.path()).await?,
        };
        let numbers = Numbers::unused();
        let sample =
            Statements::sign(options.first_type(), numbers.take(RAW_ROWS as u64), options.bytes, ENTRIES)?;
        Ok(Self { options, folder, subjects, numbers, sample })
    }

    fn settings(&self) -> Settings {
        Settings {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            content_type: self.options.first_type().to_owned(),
            statement_bytes: self.sample.length(),
            seconds: self.options.length.as_secs_f64(),
            processes: self.options.processes,
        }
    }

    async fn round(&self, subject: &Subject, number: usize) -> anyhow::Result<Round> {
        let yardsticks = YardstickPlan {
            options: self.options,
            statements: &self.sample,
            numbers: &self.numbers,
            raw_host: matches!(subject, Subject::New(_)).then(|| subject.host()),
            servers: self.subjects.iter().map(Subject::host).collect(),
        };
        let yardsticks = yardsticks.measure().await?;
        let log = self.log(subject, number).await?;
        Ok(Round { yardsticks, log })
    }

    /// Measures the log of one round. A new one is removed afterwards.
    async fn log(&self, subject: &Subject, number: usize) -> anyhow::Result<LogResult> {
        let (host, program) = (subject.host(), self.options.program.as_path());
        let name = format!("bench_{}_{}_{number}", std::process::id(), subject.name());
        let folder = match subject {
            Subject::Existing { folder, .. } => folder.clone(),
            Subject::New(_) => {
                let (folder, database) = (self.folder.path().join(&name), host.create(&name).await?);
                create_log(NewLog { program, folder: &folder, database: &database })?;
                folder
            }
        };
        let service = RunningService::start(program, &folder, self.options.processes, host.pids()).await?;
        let log = LogUnderTest { options: self.options, folder: &folder, host, numbers: &self.numbers };
        let result = log.measure(service).await?;
        if let Subject::New(host) = subject {
            host.drop(&name).await?;
        }
        Ok(result)
    }
}

async fn new_logs(options: &BenchOptions, folder: &Path) -> anyhow::Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for database in &options.databases {
        subjects.push(Subject::New(DatabaseHost::of(database, folder.to_owned()).await?));
    }
    ensure!(!subjects.is_empty(), "a database is missing");
    Ok(subjects)
}

async fn existing(folder: &Path) -> anyhow::Result<Subject> {
    let host = DatabaseHost::of(&database_of(folder)?, folder.to_owned()).await?;
    Ok(Subject::Existing { host, folder: folder.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::service::CONFIG;

    fn options() -> BenchOptions {
        BenchOptions {
            program: PathBuf::new(),
            echo: Vec::new(),
            databases: vec![BenchDatabase::Sqlite],
            existing: None,
            rounds: 1,
            length: Duration::from_secs(1),
            clients: vec![1, 64],
            types: vec![statements::OPAQUE.to_owned()],
            bytes: 1024,
            offered: Vec::new(),
            processes: 1,
            peer: None,
            folder: None,
        }
    }

    #[test]
    fn options_that_cannot_be_measured_are_refused() {
        assert!(check(&options()).is_ok());
        for wrong in [
            BenchOptions { rounds: 0, ..options() },
            BenchOptions { clients: vec![], ..options() },
            BenchOptions { clients: vec![64, 1], ..options() },
            BenchOptions { clients: vec![0], ..options() },
            BenchOptions { types: vec![], ..options() },
            BenchOptions { types: vec!["image/png".to_owned()], ..options() },
            BenchOptions { processes: 2, ..options() },
        ] {
            assert!(check(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn several_processes_need_an_existing_log_on_postgresql() {
        let folder = tempfile::tempdir().unwrap();
        let existing = Some(folder.path().to_owned());
        let options = BenchOptions { processes: 2, existing, ..options() };
        let configure = |text: &str| fs::write(folder.path().join(CONFIG), text).unwrap();
        configure("db = \"postgres://u@127.0.0.1/log\"\n");
        assert!(check(&options).is_ok());
        configure("db = \"sqlite:log.db\"\n");
        assert!(check(&options).unwrap_err().to_string().contains("PostgreSQL"));
    }
}
