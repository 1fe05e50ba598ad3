//! Cost of a registration in writes, statements, batches and signatures: counts, which hardly depend on the load of the
//! machine, compared with those in `tests/speed-baseline.toml`. Times are measured by `tabellion bench`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::thread;
use std::time::Duration;

use black_box::{Cluster, Connection, Database, Log, Service, sql};
use scitt::SignedStatement;

/// Number of clients that register at the same time; the goals are stated for this number.
const CLIENTS: usize = 256;
/// Statements of each client.
const EACH: usize = 20;

/// Most times that a client asks an overloaded service.
const MOST_TRIES: u32 = 30;
/// Pause before it asks again.
const RETRY: Duration = Duration::from_secs(1);

/// The recorded counts.
const BASELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/speed-baseline.toml");
/// Set to record the measured counts.
const WRITE: &str = "TABELLION_TEST_WRITE_BASELINE";
/// Database of the views that count statements, so that the log's own has nothing else in it.
const COUNTING: &str = "counting";

#[test]
fn a_registration_writes_executes_and_signs_no_more_than_recorded() {
    // After each checkpoint PostgreSQL logs whole pages; with these settings none falls into the measurement.
    let cluster = Cluster::start(&[
        "max_wal_size=4GB",
        "checkpoint_timeout=1h",
        "shared_preload_libraries=pg_stat_statements",
    ]);
    let counting = counting_database(&cluster);
    let log = Log::on(Database::Postgres(cluster.url().to_owned()));
    let service = log.serve();
    let statements: Vec<_> = (0..CLIENTS * EACH).map(|_| log.statement()).collect();
    register(&statements[..CLIENTS], || service.connection());

    let before = Counters::now(&service, &cluster, &counting);
    register(&statements[CLIENTS..], || service.connection());
    let after = Counters::now(&service, &cluster, &counting);
    service.stop();

    let size: usize = statements.iter().map(|statement| statement.bytes().len()).sum();
    let statement = size as f64 / statements.len() as f64;
    let measured = after.since(&before).per_registration((statements.len() - CLIENTS) as f64, statement);
    eprintln!("{measured:?}");
    compare(&measured);
}

/// Counters of the service and of its database.
struct Counters {
    batches: f64,
    signatures: f64,
    wal_bytes: f64,
    statements: f64,
}

impl Counters {
    fn now(service: &Service, cluster: &Cluster, counting: &str) -> Self {
        let wal = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8";
        let calls = "SELECT coalesce(sum(s.calls), 0)::float8 FROM pg_stat_statements s \
                     JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = 'postgres'";
        Self {
            batches: service.metric("tabellion_sequence_batch_entries_count"),
            signatures: service.metric("tabellion_head_signatures_total"),
            wal_bytes: number(cluster.url(), wal),
            statements: number(counting, calls),
        }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            batches: self.batches - before.batches,
            signatures: self.signatures - before.signatures,
            wal_bytes: self.wal_bytes - before.wal_bytes,
            statements: self.statements - before.statements,
        }
    }

    /// Returns the counts of the baseline by name, for this number of registrations of statements of this length.
    fn per_registration(&self, registrations: f64, statement: f64) -> BTreeMap<&'static str, f64> {
        BTreeMap::from([
            ("wal_bytes", self.wal_bytes / registrations - statement),
            ("batches_per_registration", self.batches / registrations),
            ("signatures_per_batch", self.signatures / self.batches),
            ("statements_per_batch", self.statements / self.batches),
        ])
    }
}

/// Compares the counts with the baseline, or records them in it.
fn compare(measured: &BTreeMap<&'static str, f64>) {
    let text = fs::read_to_string(BASELINE).unwrap();
    if std::env::var_os(WRITE).is_some() {
        fs::write(BASELINE, recorded(&text, measured)).unwrap();
        return;
    }
    let baseline: toml::Table = text.parse().unwrap();
    assert!(baseline.keys().eq(measured.keys()), "the baseline has other counts than the test");
    let mut exceeded = String::new();
    for (name, value) in measured {
        let number = |member: &str| {
            let member = &baseline[*name][member];
            member.as_float().or(member.as_integer().map(|integer| integer as f64)).unwrap()
        };
        let most = number("recorded") * number("tolerance");
        if *value > most {
            let _ = writeln!(exceeded, "{name}: {value:.4}, at most {most:.4}");
        }
    }
    assert!(exceeded.is_empty(), "counts above the baseline (tests/speed-baseline.toml):\n{exceeded}");
}

/// Returns the baseline with the measured counts in place of the recorded ones.
fn recorded(baseline: &str, measured: &BTreeMap<&'static str, f64>) -> String {
    let mut section = "";
    let mut text = String::new();
    for line in baseline.lines() {
        section = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(section);
        match (line.strip_prefix("recorded = "), measured.get(section)) {
            (Some(_), Some(value)) => text.push_str(&format!("recorded = {value:?}\n")),
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    text
}

#[test]
fn recorded_counts_replace_those_of_their_section_only() {
    let baseline = "# a\n[a]\nrecorded = 1\ntolerance = 2.0\n\n[b]\nrecorded = 3\n";
    let expected = "# a\n[a]\nrecorded = 1.5\ntolerance = 2.0\n\n[b]\nrecorded = 3\n";
    assert_eq!(recorded(baseline, &BTreeMap::from([("a", 1.5)])), expected);
}

/// Creates the database with the views of the counted statements, and returns its URL.
fn counting_database(cluster: &Cluster) -> String {
    sql(cluster.url(), &format!("CREATE DATABASE {COUNTING}"));
    let (server, _) = cluster.url().rsplit_once('/').unwrap();
    let url = format!("{server}/{COUNTING}");
    sql(&url, "CREATE EXTENSION pg_stat_statements");
    url
}

fn number(url: &str, query: &str) -> f64 {
    sql(url, query).trim().parse().unwrap()
}

/// Registers the statements, an equal part by each client.
fn register(statements: &[SignedStatement], connection: impl Fn() -> Connection + Sync) {
    thread::scope(|scope| {
        for part in statements.chunks(statements.len().div_ceil(CLIENTS)) {
            let mut connection = connection();
            scope.spawn(move || {
                for statement in part {
                    register_one(&mut connection, statement);
                }
            });
        }
    });
}

/// Registers a statement. It is sent again while the service is overloaded, or has accepted it and not committed it yet.
fn register_one(connection: &mut Connection, statement: &SignedStatement) {
    for _ in 0..MOST_TRIES {
        let answer = connection.post(statement.bytes());
        match answer.status {
            200 | 201 => return,
            202 | 503 => thread::sleep(RETRY),
            _ => panic!("{answer:?}"),
        }
    }
    panic!("overloaded {MOST_TRIES} times");
}
