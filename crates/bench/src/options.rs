//! What is measured, and how long.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The program under test, which has the commands `init` and `serve`.
    pub program: PathBuf,
    /// Arguments of the program that start [`echo::serve`](crate::echo::serve); a port is appended.
    pub echo: Vec<String>,
    /// Databases of the logs.
    pub databases: Vec<BenchDatabase>,
    /// Folder of an existing log, which is measured instead of new ones.
    pub existing: Option<PathBuf>,
    /// Number of rounds.
    pub rounds: usize,
    /// Duration of each load.
    pub length: Duration,
    /// Numbers of clients of the closed loop, ascending.
    pub clients: Vec<usize>,
    /// Content types of the statements. The first one has all loads, each other one a load with most clients.
    pub types: Vec<String>,
    /// Length of an opaque statement in bytes.
    pub bytes: usize,
    /// Rates of the open loop.
    pub offered: Vec<OfferedRate>,
    /// Number of service processes on one database; more than one needs PostgreSQL.
    pub processes: usize,
    /// Another service that takes the same requests.
    pub peer: Option<PeerService>,
    /// Folder in which logs are created: on the disk that is to be measured.
    pub folder: Option<PathBuf>,
}

impl BenchOptions {
    /// Returns the largest number of clients.
    pub(crate) fn most_clients(&self) -> usize {
        self.clients.iter().copied().max().unwrap_or(1)
    }

    /// Returns the content type of the loads that are compared with yardsticks.
    pub(crate) fn first_type(&self) -> &str {
        self.types.first().map_or("", String::as_str)
    }
}

/// Where the database of a log is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BenchDatabase {
    /// A SQLite file in the log's folder.
    Sqlite,
    /// A new database on the PostgreSQL server with this URL, whose user may create databases.
    Postgres(String),
}

impl BenchDatabase {
    /// Returns the name in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }
}

impl FromStr for BenchDatabase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Ok(Self::Postgres(url.to_owned()))
            }
            _ => Err("give sqlite, or the URL of a PostgreSQL server".to_owned()),
        }
    }
}

/// A rate at which an open loop sends requests, whether or not earlier ones are answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfferedRate {
    /// Requests per second.
    PerSecond(f64),
    /// A multiple of the rate of the closed loop with most clients, in the same round.
    Multiple(f64),
}

impl FromStr for OfferedRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, make): (_, fn(f64) -> Self) = match text.strip_suffix('x') {
            Some(digits) => (digits, Self::Multiple),
            None => (text, Self::PerSecond),
        };
        let rate = digits.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
        rate.map(make).ok_or_else(|| "give requests per second, or a multiple such as 2x".to_owned())
    }
}

/// A service of any maker that takes the same requests, for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerService {
    /// Its address.
    pub address: SocketAddr,
    /// Path of the `POST` request.
    pub path: String,
    /// The command that starts it; empty if it runs already, and its CPU time is not known.
    pub command: Vec<String>,
}

impl FromStr for PeerService {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace().map(str::to_owned);
        let place = words.next().unwrap_or_default();
        let (address, path) = place.split_once('/').ok_or("give HOST:PORT/PATH, and perhaps a command")?;
        let address = address.parse().map_err(|error| format!("{address}: {error}"))?;
        Ok(Self { address, path: format!("/{path}"), command: words.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_or_a_multiple() {
        assert_eq!("500".parse(), Ok(OfferedRate::PerSecond(500.0)));
        assert_eq!("2x".parse(), Ok(OfferedRate::Multiple(2.0)));
        for wrong in ["", "x", "-1", "0", "inf", "2y"] {
            assert!(wrong.parse::<OfferedRate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_peer_is_an_address_and_perhaps_a_command() {
        let running: PeerService = "127.0.0.1:5082/r".parse().unwrap();
        assert_eq!((running.path.as_str(), running.command.len()), ("/r", 0));
        let started: PeerService = "127.0.0.1:5082/r proto --pg {postgres}".parse().unwrap();
        assert_eq!(started.command, ["proto", "--pg", "{postgres}"]);
        assert!("127.0.0.1:5082".parse::<PeerService>().is_err());
        assert!("localhost/entries".parse::<PeerService>().is_err());
    }

    #[test]
    fn a_database_is_sqlite_or_a_server() {
        assert_eq!("sqlite".parse(), Ok(BenchDatabase::Sqlite));
        let url = "postgres://u@127.0.0.1/postgres";
        assert_eq!(url.parse(), Ok(BenchDatabase::Postgres(url.to_owned())));
        assert!("mysql://u@h/d".parse::<BenchDatabase>().is_err());
    }
}
