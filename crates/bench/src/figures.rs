//! The figures of a round under one list of names, which reports and comparisons share.

use crate::result::{DatabaseResult, LoadResult, Round};
use crate::stats::Spread;

/// Which change of a figure is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
}

/// A figure with its name and unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// The name, the same in every result.
    pub(crate) name: String,
    /// The unit.
    pub(crate) unit: &'static str,
    /// Which change is an improvement.
    pub(crate) better: Better,
    /// The value in one round.
    pub(crate) value: f64,
}

/// A figure over all rounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoundsFigure {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) spread: Spread,
}

/// Returns the figures over all rounds of a database, in the order of its first round.
pub(crate) fn of_rounds(database: &DatabaseResult) -> Vec<RoundsFigure> {
    let rounds: Vec<Vec<Figure>> = database.rounds.iter().map(of_round).collect();
    let names = rounds.first().into_iter().flatten();
    names
        .filter_map(|figure| {
            let same = rounds.iter().flatten().filter(|other| other.name == figure.name);
            let spread = Spread::of(same.map(|other| other.value))?;
            Some(RoundsFigure { name: figure.name.clone(), unit: figure.unit, better: figure.better, spread })
        })
        .collect()
}

/// Returns the figures of one round.
fn of_round(round: &Round) -> Vec<Figure> {
    let (log, yardsticks) = (&round.log, &round.yardsticks);
    let mut figures = Vec::new();
    if let Some(raw) = &yardsticks.raw {
        figures.push(higher("raw inserts", "rows/s", raw.rows_per_second));
        figures.push(lower("one-row commit, p50", "ms", raw.commit_p50_ms));
    }
    yardsticks.echo.iter().for_each(|load| add_load(&mut figures, &named("HTTP echo", load), load));
    yardsticks.peer.iter().for_each(|load| add_load(&mut figures, &named("peer", load), load));
    log.closed.iter().for_each(|load| add_load(&mut figures, &named("registrations", load), load));
    for (number, load) in log.open.iter().enumerate() {
        add_load(&mut figures, &format!("open loop {}", number + 1), load);
    }
    for typed in &log.types {
        add_load(&mut figures, &typed.content_type, &typed.load);
    }
    add_load(&mut figures, "known statements", &log.known);
    add_load(&mut figures, "receipts", &log.proofs);
    if let Some(bytes) = log.counts.wal_bytes {
        figures.push(lower("write-ahead log per registration", "bytes", bytes));
    }
    figures.push(lower("batches per registration", "", log.counts.batches));
    figures.push(lower("signatures per batch", "", log.counts.signatures_per_batch));
    figures.push(lower("resident memory", "MiB", log.memory_bytes as f64 / f64::from(1 << 20)));
    figures.push(lower("restart to first receipt", "ms", log.restart_ms));
    for stage in &log.stages {
        figures.push(lower(&format!("stage {}", stage.stage), "µs", stage.mean_us));
    }
    figures
}

fn named(name: &str, load: &LoadResult) -> String {
    format!("{name}, {} clients", load.clients)
}

fn add_load(figures: &mut Vec<Figure>, name: &str, load: &LoadResult) {
    figures.push(higher(name, "per s", load.per_second));
    figures.push(lower(&format!("{name}, p50"), "ms", load.p50_ms));
    figures.push(lower(&format!("{name}, p99"), "ms", load.p99_ms));
    figures.push(lower(&format!("{name}, CPU"), "µs", load.cpu.total()));
}

fn higher(name: &str, unit: &'static str, value: f64) -> Figure {
    Figure { name: name.to_owned(), unit, better: Better::Higher, value }
}

fn lower(name: &str, unit: &'static str, value: f64) -> Figure {
    Figure { name: name.to_owned(), unit, better: Better::Lower, value }
}
