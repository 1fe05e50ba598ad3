//! The result as a table, with the goals that it meets and misses.

use std::fmt::Write;

use crate::goals;
use crate::result::{BenchResult, DatabaseResult, LoadResult, Round};
use crate::stats::{Spread, median};

/// Returns the result as text.
pub fn text(result: &BenchResult) -> String {
    let mut out = String::new();
    for database in &result.databases {
        let (rounds, settings) = (database.rounds.len(), &result.settings);
        let _ = writeln!(
            out,
            "\n{}: medians of {rounds} rounds, {} service process(es), {} of {} bytes\n",
            database.database, settings.processes, settings.content_type, settings.statement_bytes
        );
        write_yardsticks(&mut out, result, database);
        write_loads(&mut out, database);
        write_costs(&mut out, database);
        write_goals(&mut out, result, database);
    }
    out
}

fn write_yardsticks(out: &mut String, result: &BenchResult, database: &DatabaseResult) {
    let raw = |of: fn(&crate::result::RawResult) -> f64| {
        median(database.rounds.iter().filter_map(|round| round.yardsticks.raw.as_ref().map(of)))
    };
    if let (Some(rows), Some(cpu), Some(commit)) =
        (raw(|raw| raw.rows_per_second), raw(|raw| raw.cpu_us), raw(|raw| raw.commit_p50_ms))
    {
        let _ = writeln!(
            out,
            "raw inserts: {rows:.0} rows/s, {cpu:.1} µs CPU a row; one-row commit: p50 {commit:.2} ms"
        );
    }
    let _ = writeln!(out, "parse and signature check: {:.1} µs CPU\n", result.check_us);
}

fn write_loads(out: &mut String, database: &DatabaseResult) {
    let _ = writeln!(
        out,
        "{:<34} {:>9} {:>9} {:>9}   {:>29} {:>7} {:>6}",
        "load", "per s", "p50 ms", "p99 ms", "CPU µs client+service+database", "refused", "others"
    );
    let Some(first) = database.rounds.first() else { return };
    let (log, yardsticks) = (&first.log, &first.yardsticks);
    for place in 0..yardsticks.echo.len() {
        write_load(out, database, "HTTP echo", |round| round.yardsticks.echo.get(place));
    }
    for place in 0..yardsticks.peer.len() {
        write_load(out, database, "peer", |round| round.yardsticks.peer.get(place));
    }
    for place in 0..log.closed.len() {
        write_load(out, database, "registrations", |round| round.log.closed.get(place));
    }
    for place in 0..log.open.len() {
        write_load(out, database, "open loop", |round| round.log.open.get(place));
    }
    for (place, typed) in log.types.iter().enumerate() {
        let name = typed.content_type.trim_start_matches("application/");
        write_load(out, database, name, |round| round.log.types.get(place).map(|typed| &typed.load));
    }
    write_load(out, database, "known statements", |round| Some(&round.log.known));
    write_load(out, database, "receipts", |round| Some(&round.log.proofs));
}

fn write_load<'a>(
    out: &mut String,
    database: &'a DatabaseResult,
    name: &str,
    of: impl Fn(&'a Round) -> Option<&'a LoadResult>,
) {
    let loads: Vec<&LoadResult> = database.rounds.iter().filter_map(of).collect();
    let Some(any) = loads.first() else { return };
    let middle = |of: fn(&LoadResult) -> f64| median(loads.iter().map(|load| of(load))).unwrap_or_default();
    let refused: usize = loads.iter().map(|load| load.refused).sum();
    let others: usize = loads.iter().flat_map(|load| load.others.values()).sum();
    let label = match any.offered {
        Some(_) => format!("{name}, {:.0}/s offered", middle(|load| load.offered.unwrap_or_default())),
        None => format!("{name}, {}", any.clients),
    };
    let _ = writeln!(
        out,
        "{label:<34} {:>9.0} {:>9.2} {:>9.2}   {:>6.1} + {:>5.1} + {:>5.1} = {:>6.1} {refused:>7} {others:>6}",
        middle(|load| load.per_second),
        middle(|load| load.p50_ms),
        middle(|load| load.p99_ms),
        middle(|load| load.cpu.client_us),
        middle(|load| load.cpu.service_us),
        middle(|load| load.cpu.database_us),
        middle(|load| load.cpu.total()),
    );
}

fn write_costs(out: &mut String, database: &DatabaseResult) {
    let middle = |of: fn(&Round) -> f64| median(database.rounds.iter().map(of)).unwrap_or_default();
    let _ = writeln!(
        out,
        "\nresident memory {:.0} MiB; restart to first receipt {:.0} ms; {:.0} leaves before the loads",
        middle(|round| round.log.memory_bytes as f64) / f64::from(1 << 20),
        middle(|round| round.log.restart_ms),
        middle(|round| round.log.leaves as f64),
    );
    let stages = database.rounds.first().map(|round| round.log.stages.as_slice()).unwrap_or_default();
    let means = stages.iter().map(|stage| {
        let in_rounds = database.rounds.iter().flat_map(|round| &round.log.stages);
        let mean =
            Spread::of(in_rounds.filter(|other| other.stage == stage.stage).map(|other| other.mean_us));
        format!("{} {:.0}", stage.stage, mean.map_or(0.0, |mean| mean.median))
    });
    let _ = writeln!(out, "mean time by stage, µs: {}", means.collect::<Vec<_>>().join(", "));
}

fn write_goals(out: &mut String, result: &BenchResult, database: &DatabaseResult) {
    let _ = writeln!(out, "\n{:<5} {:>9} {:>8} {:>8}  goal", "", "measured", "must", "aim");
    for measured in goals::measured(result, database) {
        let verdict = match measured.verdict() {
            "aim" => "",
            "must" => "  (short of the aim)",
            _ => "  MISSED",
        };
        let (goal, value) = (measured.goal, measured.value);
        let (must, aim) = (goal.must.text(), goal.aim.text());
        let _ = writeln!(out, "{:<5} {value:>9.3} {must:>8} {aim:>8}  {}{verdict}", goal.label, goal.ratio);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_medians_costs_and_goals() {
        let text = text(&crate::result::sample(&[100.0, 300.0, 200.0]));
        for part in [
            "sqlite: medians of 3 rounds",
            "registrations, 64",
            "      200 ",
            "verify 50",
            "G17",
            "vrf+json, 64",
        ] {
            assert!(text.contains(part), "{part} is missing:\n{text}");
        }
        assert!(!text.contains("peer,"), "{text}");
    }
}
