//! Comparison of two results.
//!
//! A difference counts if the ranges of the figure over the rounds of both results have no value in common. With three
//! rounds on a quiet machine that is rare by chance; it says nothing about a machine that changed between the two runs.

use serde::Serialize;

use crate::figures::{self, Better, RoundsFigure};
use crate::result::{BenchResult, Settings};

/// Differences between two results.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Settings that differ, so that figures may differ for that reason.
    pub different_settings: Vec<&'static str>,
    /// Figures of the databases that both results have.
    pub databases: Vec<DatabaseComparison>,
}

/// Compared figures of one database.
#[derive(Clone, Debug, Serialize)]
pub struct DatabaseComparison {
    /// The database.
    pub database: String,
    /// The figures that both results have.
    pub figures: Vec<ComparedFigure>,
}

/// A figure in both results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// Name of the figure.
    pub name: String,
    /// Unit of the figure.
    pub unit: &'static str,
    /// Median in the first result.
    pub before: f64,
    /// Median in the second result.
    pub after: f64,
    /// `after` ÷ `before`; `None` if `before` is 0.
    pub ratio: Option<f64>,
    /// The conclusion.
    pub change: Change,
}

/// Whether a figure changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The difference is within the spread of the rounds.
    Unchanged,
    /// Each round of the second result is better than each of the first.
    Better,
    /// Each round of the second result is worse than each of the first.
    Worse,
}

/// Compares two results.
pub fn compare(before: &BenchResult, after: &BenchResult) -> Comparison {
    let databases = before.databases.iter().filter_map(|first| {
        let second = after.databases.iter().find(|second| second.database == first.database)?;
        let (before, after) = (figures::of_rounds(first), figures::of_rounds(second));
        let pairs = before.iter().filter_map(|figure| {
            let same = after.iter().find(|other| other.name == figure.name)?;
            Some(compared(figure, same))
        });
        Some(DatabaseComparison { database: first.database.clone(), figures: pairs.collect() })
    });
    Comparison {
        different_settings: different(&before.settings, &after.settings),
        databases: databases.collect(),
    }
}

fn compared(before: &RoundsFigure, after: &RoundsFigure) -> ComparedFigure {
    let (first, second) = (before.spread.median, after.spread.median);
    let rises = second > first;
    let change = match (before.spread.is_apart_from(&after.spread), before.better) {
        (false, _) => Change::Unchanged,
        (true, Better::Higher) if rises => Change::Better,
        (true, Better::Lower) if !rises => Change::Better,
        (true, _) => Change::Worse,
    };
    let ratio = (first != 0.0).then(|| second / first);
    ComparedFigure {
        name: before.name.clone(),
        unit: before.unit,
        before: first,
        after: second,
        ratio,
        change,
    }
}

/// Returns the names of the settings that differ. The program's version may differ: that is what is compared.
fn different(before: &Settings, after: &Settings) -> Vec<&'static str> {
    let settings = [
        ("content type", before.content_type == after.content_type),
        ("statement bytes", before.statement_bytes == after.statement_bytes),
        ("seconds", before.seconds == after.seconds),
        ("processes", before.processes == after.processes),
    ];
    settings.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::sample;

    fn figure<'a>(comparison: &'a Comparison, name: &str) -> &'a ComparedFigure {
        comparison.databases[0].figures.iter().find(|figure| figure.name == name).unwrap()
    }

    #[test]
    fn a_change_counts_if_all_rounds_agree() {
        let before = sample(&[100.0, 110.0, 120.0]);
        let rates = |rates: &[f64]| {
            let comparison = compare(&before, &sample(rates));
            let rate = figure(&comparison, "registrations, 64 clients").clone();
            (rate.ratio.unwrap(), rate.change)
        };
        assert_eq!(rates(&[200.0, 220.0, 240.0]), (2.0, Change::Better));
        assert_eq!(rates(&[50.0, 55.0, 60.0]), (0.5, Change::Worse));
        assert_eq!(rates(&[119.0, 121.0, 140.0]).1, Change::Unchanged);
        assert_eq!(figure(&compare(&before, &before), "receipts, p50").change, Change::Unchanged);
    }

    #[test]
    fn other_settings_and_missing_databases_are_reported() {
        let before = sample(&[1.0]);
        let mut after = before.clone();
        after.settings.processes = 4;
        assert_eq!(compare(&before, &after).different_settings, ["processes"]);
        after.databases[0].database = "postgres".to_owned();
        assert!(compare(&before, &after).databases.is_empty());
    }
}
