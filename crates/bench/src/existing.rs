//! An existing log: its database, and the entries that `grow` wrote.

use std::fs;
use std::path::Path;

use anyhow::Context;
use jose::json;
use serde::{Deserialize, Serialize};

use crate::options::BenchDatabase;
use crate::service::CONFIG;

/// File in the folder of a log that [`grow`](crate::grow) made.
const GROWN: &str = "grown.json";

/// The entries that [`grow`](crate::grow) wrote, which can be made again from their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrownEntries {
    /// Number of entries; their statements have the numbers from 0 on.
    pub(crate) entries: u64,
    /// Their content type.
    pub(crate) content_type: String,
    /// Length of their statements in bytes, as given to the command.
    pub(crate) bytes: usize,
}

impl GrownEntries {
    /// Writes the file.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        Ok(fs::write(folder.join(GROWN), serde_json::to_vec(self)?)?)
    }

    /// Reads the file; `None` if the log was not made by [`grow`](crate::grow).
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let file = folder.join(GROWN);
        match fs::read(&file) {
            Ok(bytes) => {
                let read = json::read_bytes(&bytes);
                read.map(Some).with_context(|| format!("{} cannot be read", file.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
        }
    }
}

/// Reads where the database of the log in a folder is.
pub(crate) fn database_of(folder: &Path) -> anyhow::Result<BenchDatabase> {
    let file = folder.join(CONFIG);
    let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    let config: toml::Table = text.parse().with_context(|| format!("{} is not TOML", file.display()))?;
    let url = config.get("db").and_then(toml::Value::as_str).unwrap_or_default();
    // The path of a SQLite file does not matter: it has no processes of its own.
    let is_sqlite = url.starts_with("sqlite:");
    let named = if is_sqlite { "sqlite" } else { url };
    named.parse().map_err(|why| anyhow::anyhow!("{}: db: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_the_one_of_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(folder.path().join(CONFIG), text).unwrap();
        write("db = \"sqlite:/var/log.db\"\n");
        assert_eq!(database_of(folder.path()).unwrap(), BenchDatabase::Sqlite);
        write("db = \"postgres://u@127.0.0.1/log\"\n");
        let url = "postgres://u@127.0.0.1/log".to_owned();
        assert_eq!(database_of(folder.path()).unwrap(), BenchDatabase::Postgres(url));
        write("origin = \"a\"\n");
        assert!(database_of(folder.path()).is_err());
    }

    #[test]
    fn grown_entries_are_read_as_written_and_may_be_absent() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(GrownEntries::read(folder.path()).unwrap(), None);
        let grown = GrownEntries { entries: 7, content_type: "a/b".to_owned(), bytes: 1024 };
        grown.write(folder.path()).unwrap();
        assert_eq!(GrownEntries::read(folder.path()).unwrap(), Some(grown));
    }
}
