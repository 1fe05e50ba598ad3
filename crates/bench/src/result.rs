//! The result of a measurement, as JSON: what `tabellion bench run --output` writes and `bench compare` reads.

use std::collections::BTreeMap;

use jose::json::{self, JsonError, Limits};
use serde::{Deserialize, Serialize};

use crate::limits::{MAX_RESULT, RESULT_DEPTH};

/// Version of the format. A file of another version is refused.
const VERSION: u32 = 1;

/// Everything that one run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchResult {
    /// Version of the format.
    pub(crate) version: u32,
    /// Time of the end of the measurement (RFC 3339, UTC).
    pub(crate) at: String,
    /// The machine.
    pub(crate) machine: Machine,
    /// The options that change what the figures mean.
    pub(crate) settings: Settings,
    /// CPU microseconds to parse a statement and verify its signature.
    pub(crate) check_us: f64,
    /// Results for each database.
    pub(crate) databases: Vec<DatabaseResult>,
}

/// The machine of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    /// Model of the processor.
    pub(crate) processor: String,
    /// Number of processors available to this process.
    pub(crate) processors: usize,
    /// Memory in bytes.
    pub(crate) memory_bytes: u64,
    /// Load averages of 1, 5 and 15 minutes before the measurement.
    pub(crate) load_average: String,
}

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Version of the program.
    pub(crate) program: String,
    /// Content type of the main loads.
    pub(crate) content_type: String,
    /// Length of one statement of this type in bytes.
    pub(crate) statement_bytes: usize,
    /// Seconds of each load.
    pub(crate) seconds: f64,
    /// Number of service processes.
    pub(crate) processes: usize,
}

/// Results for one database.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseResult {
    /// `sqlite`, `postgres` or `existing`.
    pub(crate) database: String,
    /// Results of each round.
    pub(crate) rounds: Vec<Round>,
}

/// Results of one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Round {
    /// Limits of the machine.
    pub(crate) yardsticks: Yardsticks,
    /// Results of the log.
    pub(crate) log: LogResult,
}

/// Measurements of the parts alone, and of another service.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Yardsticks {
    /// Raw inserts into the database; `None` for an existing log.
    pub(crate) raw: Option<RawResult>,
    /// HTTP echo, for each number of clients.
    pub(crate) echo: Vec<LoadResult>,
    /// The other service, for each number of clients; empty if there is none.
    pub(crate) peer: Vec<LoadResult>,
}

/// Limits of a database.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawResult {
    /// Rows per second, in transactions of many rows.
    pub(crate) rows_per_second: f64,
    /// CPU microseconds per row, including the client's.
    pub(crate) cpu_us: f64,
    /// Median latency of a commit with one row, in milliseconds.
    pub(crate) commit_p50_ms: f64,
}

/// Measurements of one log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogResult {
    /// Leaves before the loads.
    pub(crate) leaves: u64,
    /// Registrations in a closed loop, for each number of clients.
    pub(crate) closed: Vec<LoadResult>,
    /// Registrations in an open loop, for each offered rate.
    pub(crate) open: Vec<LoadResult>,
    /// Registrations of the other content types, with most clients.
    pub(crate) types: Vec<TypeResult>,
    /// Repeated registration of the statements of the closed loop with most clients.
    pub(crate) known: LoadResult,
    /// Receipts of entries anywhere in the log.
    pub(crate) proofs: LoadResult,
    /// Counts of the closed loop with most clients.
    pub(crate) counts: Counts,
    /// Mean time that registrations spent in each stage during the closed loops, from the service's metrics.
    pub(crate) stages: Vec<Stage>,
    /// Largest resident memory of all service processes in bytes, after any of the loads.
    pub(crate) memory_bytes: u64,
    /// Milliseconds from the start of the killed service to its first receipt.
    pub(crate) restart_ms: f64,
}

/// Counts per registration, which hardly depend on other load on the machine.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counts {
    /// Bytes of write-ahead log per registration; `None` for SQLite.
    pub(crate) wal_bytes: Option<f64>,
    /// Committed batches per registration.
    pub(crate) batches: f64,
    /// Signatures over heads per batch: 2 if both kinds sign each batch once.
    pub(crate) signatures_per_batch: f64,
}

/// A load of one content type.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TypeResult {
    /// The content type.
    pub(crate) content_type: String,
    /// Length of a statement in bytes.
    pub(crate) statement_bytes: usize,
    /// The load.
    pub(crate) load: LoadResult,
}

/// Mean time in one stage of a registration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stage {
    /// Label `stage` of the service's metric.
    pub(crate) stage: String,
    /// Number of observations.
    pub(crate) count: f64,
    /// Mean in microseconds.
    pub(crate) mean_us: f64,
}

/// Result of one load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadResult {
    /// Number of clients.
    pub(crate) clients: usize,
    /// Requests per second that were due, in an open loop.
    pub(crate) offered: Option<f64>,
    /// Number of responses 200, 201 and 202.
    pub(crate) done: usize,
    /// Number of those with status 202: the statement is durable, and not yet in the tree.
    pub(crate) accepted: usize,
    /// Number of refusals for overload: 429 and 503.
    pub(crate) refused: usize,
    /// Number of those that say when to retry.
    pub(crate) refused_with_retry_after: usize,
    /// 99th percentile of the latency of a refusal in milliseconds.
    pub(crate) refused_p99_ms: Option<f64>,
    /// Number of other responses by status; 0 stands for a broken connection.
    pub(crate) others: BTreeMap<u16, usize>,
    /// Requests counted in `done` per second.
    pub(crate) per_second: f64,
    /// Median latency in milliseconds of the requests counted in `done`.
    pub(crate) p50_ms: f64,
    /// 99th percentile of this latency.
    pub(crate) p99_ms: f64,
    /// CPU time per request counted in `done`.
    pub(crate) cpu: CpuCost,
}

/// CPU time per request in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CpuCost {
    /// CPU time of the client.
    pub(crate) client_us: f64,
    /// CPU time of the service's processes.
    pub(crate) service_us: f64,
    /// CPU time of the database's own processes.
    pub(crate) database_us: f64,
}

/// Reason why a file is not a result.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableResult {
    /// The text is not JSON of this format.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The result has another version of the format.
    #[error("version {0} of the format; this program reads version {VERSION}")]
    Version(u32),
    /// A database has no rounds.
    #[error("the database {0:?} has no rounds")]
    Empty(String),
}

impl BenchResult {
    /// Creates a result that ends now.
    pub(crate) fn new(
        machine: Machine,
        settings: Settings,
        check_us: f64,
        databases: Vec<DatabaseResult>,
    ) -> Self {
        let at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Self { version: VERSION, at, machine, settings, check_us, databases }
    }

    /// Parses a result as strict JSON.
    ///
    /// # Errors
    /// If the text is not a result of this version, or has a database without rounds.
    pub fn parse(bytes: &[u8]) -> Result<Self, UnreadableResult> {
        let result: Self = json::read_strict(bytes, Limits { bytes: MAX_RESULT, depth: RESULT_DEPTH })?;
        if result.version != VERSION {
            return Err(UnreadableResult::Version(result.version));
        }
        match result.databases.iter().find(|database| database.rounds.is_empty()) {
            Some(empty) => Err(UnreadableResult::Empty(empty.database.clone())),
            None => Ok(result),
        }
    }
}

impl CpuCost {
    /// Returns the sum of all parts.
    pub(crate) fn total(&self) -> f64 {
        self.client_us + self.service_us + self.database_us
    }
}

/// Returns a result with one database, whose rounds register at these rates.
#[cfg(test)]
pub(crate) fn sample(rates: &[f64]) -> BenchResult {
    let load = |per_second: f64, clients: usize| LoadResult {
        clients,
        offered: None,
        done: 1000,
        accepted: 0,
        refused: 0,
        refused_with_retry_after: 0,
        refused_p99_ms: None,
        others: BTreeMap::new(),
        per_second,
        p50_ms: 2.0,
        p99_ms: 4.0,
        cpu: CpuCost { client_us: 10.0, service_us: 100.0, database_us: 50.0 },
    };
    let round = |rate: &f64| Round {
        yardsticks: Yardsticks {
            raw: Some(RawResult { rows_per_second: 1000.0, cpu_us: 10.0, commit_p50_ms: 0.5 }),
            echo: vec![load(500.0, 64)],
            peer: Vec::new(),
        },
        log: LogResult {
            leaves: 1,
            closed: vec![load(*rate, 64)],
            open: Vec::new(),
            types: vec![TypeResult {
                content_type: "application/vrf+json".to_owned(),
                statement_bytes: 700,
                load: load(*rate, 64),
            }],
            known: load(400.0, 64),
            proofs: load(800.0, 8),
            counts: Counts { wal_bytes: Some(1400.0), batches: 0.01, signatures_per_batch: 2.0 },
            stages: vec![Stage { stage: "verify".to_owned(), count: 10.0, mean_us: 50.0 }],
            memory_bytes: 64 << 20,
            restart_ms: 120.0,
        },
    };
    let machine = Machine {
        processor: "CPU <1>".to_owned(),
        processors: 2,
        memory_bytes: 8 << 30,
        load_average: "0.1 0.2 0.3".to_owned(),
    };
    let settings = Settings {
        program: "0.1.0".to_owned(),
        content_type: "application/octet-stream".to_owned(),
        statement_bytes: 1024,
        seconds: 5.0,
        processes: 1,
    };
    let rounds = rates.iter().map(round).collect();
    let databases = vec![DatabaseResult { database: "sqlite".to_owned(), rounds }];
    BenchResult::new(machine, settings, 55.0, databases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_as_written() {
        let written = serde_json::to_vec(&sample(&[1.0, 2.0])).unwrap();
        let read = BenchResult::parse(&written).unwrap();
        assert_eq!(serde_json::to_vec(&read).unwrap(), written);
    }

    #[test]
    fn what_is_no_result_of_this_version_is_refused() {
        let parse = |result: &BenchResult| BenchResult::parse(&serde_json::to_vec(result).unwrap());
        let other = BenchResult { version: 2, ..sample(&[1.0]) };
        assert!(matches!(parse(&other), Err(UnreadableResult::Version(2))));
        assert!(matches!(parse(&sample(&[])), Err(UnreadableResult::Empty(_))));
        assert!(matches!(BenchResult::parse(b"{}"), Err(UnreadableResult::Json(_))));
        assert!(matches!(
            BenchResult::parse(b"{\"version\":1,\"version\":1}"),
            Err(UnreadableResult::Json(_))
        ));
    }
}
