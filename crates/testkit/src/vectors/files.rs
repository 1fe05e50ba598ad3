//! Files of sources and vectors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Environment variable that makes the assertions write the vectors instead of only comparing them.
const WRITE: &str = "WRITE_VECTORS";

/// `family.toml`: what the cases of one family share. A family without statements has none.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorFamily {
    /// Ed25519 seeds in hexadecimal, by name.
    pub keys: BTreeMap<String, String>,
    /// Name of the statement that a case starts from unless it names another.
    #[serde(default)]
    pub base: String,
    /// Policy options, unless a case names its own.
    #[serde(default)]
    pub options: serde_json::Map<String, Value>,
    /// Time of the log, if the family's vectors have one.
    pub at: Option<u64>,
    /// Names of the statements in the log, if the family's vectors have a log.
    pub log: Option<Vec<toml::Value>>,
    /// Statements by name.
    pub statement: BTreeMap<String, toml::Table>,
}

impl VectorFamily {
    /// Reads `family.toml` in a folder of sources, if there is one.
    pub fn of(sources: &Path) -> Self {
        let path = sources.join("family.toml");
        if path.exists() { read(&path) } else { Self::default() }
    }
}

/// Returns the folder of all vectors.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

/// Compares the vectors that are present with those that were made; with `WRITE_VECTORS` set, writes these first.
pub fn compare(present: &[PathBuf], made: &BTreeMap<PathBuf, String>) {
    if std::env::var_os(WRITE).is_some() {
        for (path, text) in made {
            std::fs::create_dir_all(path.parent().expect("a vector is in a folder")).expect("a new folder");
            std::fs::write(path, text).expect("a new vector");
        }
    }
    let without_source: Vec<&PathBuf> = present.iter().filter(|path| !made.contains_key(*path)).collect();
    let differ = |path: &PathBuf, text: &str| std::fs::read_to_string(path).ok().as_deref() != Some(text);
    let different: Vec<&PathBuf> =
        made.iter().filter(|(path, text)| differ(path, text)).map(|(path, _)| path).collect();
    assert!(
        without_source.is_empty() && different.is_empty(),
        "without a source: {without_source:#?}; not what the source describes: {different:#?}"
    );
}

/// Adds a vector to those that were made; a second one under a path is a mistake of the sources.
pub fn insert(made: &mut BTreeMap<PathBuf, String>, path: PathBuf, vector: &Value) {
    let text = serde_json::to_string_pretty(vector).expect("a value has a text") + "\n";
    assert!(!made.contains_key(&path), "{}: a second case of this name", path.display());
    made.insert(path, text);
}

/// Returns the paths of a family's sources except `family.toml`.
pub fn rules(sources: &Path) -> Vec<PathBuf> {
    entries(sources).into_iter().filter(|path| !path.ends_with("family.toml")).collect()
}

/// Returns the name of a file without its extension.
pub fn stem(path: &Path) -> String {
    path.file_stem().and_then(|stem| stem.to_str()).expect("a name is text").to_owned()
}

/// Splits a case from the statement or the input that it describes.
pub fn split<T: DeserializeOwned>(table: toml::Table, members: &[&str], path: &Path) -> (T, toml::Table) {
    let (case, rest): (toml::Table, toml::Table) =
        table.into_iter().partition(|(name, _)| members.contains(&name.as_str()));
    let case = case.try_into().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (case, rest)
}

/// Reads a source.
pub fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the paths in a folder, sorted.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}
