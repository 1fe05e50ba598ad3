//! The names of metrics: `docs/metrics.md` lists all that the services export, and dashboards, alerts and runbooks use no
//! others.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use black_box::cli::repository;

use crate::architecture::{sources, without_tests};

/// How names of metrics begin.
const PREFIXES: &[&str] = &["tabellion_", "gateway_", "witness_", "mcp_", "http_", "db_client_"];
/// Series of a histogram, which have the histogram's name and one of these.
const SUFFIXES: &[&str] = &["_bucket", "_sum", "_count"];
/// Settings whose names begin like metrics.
const SETTINGS: &[&str] = &["witness_policy"];
/// Folders whose files use metrics.
const USERS: &[&str] = &["deploy/grafana", "deploy/prometheus", "docs/runbooks"];

#[test]
fn the_page_of_metrics_lists_what_the_services_export() {
    let services = fs::read_dir(repository("services")).unwrap().map(|service| service.unwrap().path());
    let exported: BTreeSet<String> = services
        .chain([repository("crates/serving")])
        .flat_map(|folder| sources(&folder.join("src")))
        .flat_map(|file| registered(&without_tests(&fs::read_to_string(file).unwrap())))
        .collect();
    assert!(exported.len() > 70, "{exported:?}");
    assert_eq!(exported, columns().0);
}

#[test]
fn dashboards_alerts_and_runbooks_use_metrics_that_exist() {
    let (metrics, labels) = columns();
    for file in USERS.iter().flat_map(|folder| files(&repository(folder))) {
        let text = fs::read_to_string(&file).unwrap();
        let used: BTreeSet<&str> = names(&text).collect();
        for name in used {
            let histogram = SUFFIXES.iter().filter_map(|suffix| name.strip_suffix(suffix)).next();
            let exists = metrics.contains(name) || labels.contains(name) || SETTINGS.contains(&name);
            assert!(
                exists || histogram.is_some_and(|histogram| metrics.contains(histogram)),
                "{} uses {name}, which is not in docs/metrics.md",
                file.display()
            );
        }
    }
}

/// Returns the metrics that code registers: the first of two texts in a call.
fn registered(code: &str) -> Vec<String> {
    let literals: Vec<&str> = code.split('"').collect();
    let calls = literals.windows(3).filter(|part| part[0].trim_end().ends_with('(') && part[2].trim() == ",");
    calls.map(|part| part[1].to_owned()).filter(|name| is_name(name)).collect()
}

/// Returns the metrics and the labels of the tables in `docs/metrics.md`.
fn columns() -> (BTreeSet<String>, BTreeSet<String>) {
    let page = fs::read_to_string(repository("docs/metrics.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_start_matches("| ").split(" |").collect())
        .collect();
    let column = |number: usize| {
        let cells = rows.iter().flat_map(|row| row[number].split('`').skip(1).step_by(2));
        cells.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    (column(0), column(1))
}

/// Returns the words of a text that are names of metrics.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| is_name(word))
}

fn is_name(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| word.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()))
        && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
