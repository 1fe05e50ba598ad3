//! Report of the measurements, as a table with goals, and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::load::Load;
use crate::rounds::{Measured, Results, Round};
use crate::stats::median;

/// A goal for a measured ratio.
struct Goal {
    name: &'static str,
    what: &'static str,
    must: Bound,
    aim: Bound,
    /// Computes the ratio; NaN if it was not measured.
    of: fn(&Results, &Round) -> f64,
}

#[derive(Clone, Copy)]
enum Bound {
    Least(f64),
    Most(f64),
}

use Bound::{Least, Most};

/// Goals that one run can measure. G1, G4 and G9 need a peer (`--peer`).
const GOALS: &[Goal] = &[
    Goal {
        name: "G1",
        what: "registrations/s ÷ the peer's, fewest clients",
        must: Least(0.60),
        aim: Least(0.85),
        of: |_, round| first(&round.log.fresh).per_second / peer(round, 0, |load| load.per_second),
    },
    Goal {
        name: "G1",
        what: "registrations/s ÷ the peer's, most clients",
        must: Least(0.60),
        aim: Least(0.85),
        of: |_, round| last(&round.log.fresh).per_second / peer(round, usize::MAX, |load| load.per_second),
    },
    Goal {
        name: "G2",
        what: "registrations/s ÷ raw rows/s",
        must: Least(0.10),
        aim: Least(0.16),
        of: |_, round| best(&round.log.fresh) / round.limits.raw.rows_per_second,
    },
    Goal {
        name: "G3",
        what: "registrations/s ÷ HTTP echo/s, most clients",
        must: Least(0.12),
        aim: Least(0.18),
        of: |_, round| last(&round.log.fresh).per_second / last(&round.limits.echo).per_second,
    },
    Goal {
        name: "G4",
        what: "CPU of a registration ÷ the peer's, most clients",
        must: Most(1.6),
        aim: Most(1.15),
        of: |_, round| last(&round.log.fresh).cpu.total() / peer(round, usize::MAX, |load| load.cpu.total()),
    },
    Goal {
        name: "G4'",
        what: "CPU of a registration ÷ its parts alone: echo, raw row, signature check",
        must: Most(2.6),
        aim: Most(1.9),
        of: |results, round| last(&round.log.fresh).cpu.total() / floor(results, round),
    },
    Goal {
        name: "G9",
        what: "p99 ÷ the peer's, fewest clients",
        must: Most(2.0),
        aim: Most(1.3),
        of: |_, round| first(&round.log.fresh).p99_ms / peer(round, 0, |load| load.p99_ms),
    },
    Goal {
        name: "G10",
        what: "p50 of one client ÷ p50 of a one-row commit",
        must: Most(10.0),
        aim: Most(6.0),
        of: |_, round| round.log.alone.p50_ms / round.limits.raw.commit_p50_ms,
    },
    Goal {
        name: "G16",
        what: "known statements/s ÷ fresh ones/s",
        must: Least(0.8),
        aim: Least(1.5),
        of: |_, round| round.log.again.per_second / last(&round.log.fresh).per_second,
    },
    Goal {
        name: "G17",
        what: "WAL of a registration − its statement, bytes",
        must: Most(450.0),
        aim: Most(330.0),
        of: |results, round| {
            round.log.wal_bytes.map_or(f64::NAN, |bytes| bytes - results.statement_bytes as f64)
        },
    },
    Goal {
        name: "G18",
        what: "signatures of each kind ÷ batches",
        must: Most(1.0),
        aim: Most(1.0),
        of: |_, round| round.log.signatures_per_batch / 2.0,
    },
    Goal {
        name: "G18",
        what: "batches ÷ registrations, most clients",
        must: Most(1.0 / 40.0),
        aim: Most(1.0 / 100.0),
        of: |_, round| round.log.batches_per_entry,
    },
];

/// Returns the sum of the costs of a registration's parts in microseconds of CPU time: echo, raw row, and signature
/// check.
fn floor(results: &Results, round: &Round) -> f64 {
    last(&round.limits.echo).cpu.total() + round.limits.raw.cpu_us + results.check_us
}

fn first(loads: &[Load]) -> &Load {
    loads.first().expect("there is a load for each number of clients")
}

fn last(loads: &[Load]) -> &Load {
    loads.last().expect("there is a load for each number of clients")
}

fn best(loads: &[Load]) -> f64 {
    loads.iter().map(|load| load.per_second).fold(0.0, f64::max)
}

fn peer(round: &Round, place: usize, of: fn(&Load) -> f64) -> f64 {
    let loads = &round.limits.peer;
    loads.get(place.min(loads.len().saturating_sub(1))).map_or(f64::NAN, of)
}

/// Returns all results as JSON, with the medians for the goals.
pub fn json(results: &Results) -> Value {
    let goals = |measured: &Measured| {
        let goals = GOALS.iter().map(|goal| {
            let value = goal.median(results, measured);
            let met = |bound: Bound| (!value.is_nan()).then(|| bound.holds(value));
            json!({ "goal": goal.name, "what": goal.what, "value": value, "must": met(goal.must), "aim": met(goal.aim) })
        });
        goals.collect::<Vec<_>>()
    };
    let goals: serde_json::Map<_, _> = results
        .databases
        .iter()
        .map(|measured| (measured.database.to_owned(), goals(measured).into()))
        .collect();
    json!({ "results": results, "goals": goals })
}

/// Returns the results as a table.
pub fn text(results: &Results) -> String {
    let mut out = String::new();
    for measured in &results.databases {
        let rounds = measured.rounds.len();
        let _ = writeln!(
            out,
            "\n{}: medians of {rounds} rounds, statements of {} bytes\n",
            measured.database, results.statement_bytes
        );
        limits(&mut out, results, measured);
        loads(&mut out, measured);
        goals(&mut out, results, measured);
    }
    out
}

fn limits(out: &mut String, results: &Results, measured: &Measured) {
    let raw = |of: fn(&Round) -> f64| measured.median(of);
    let _ = writeln!(
        out,
        "raw insert, 4096 rows a transaction: {:.0} rows/s, {:.1} µs CPU a row; one-row commit: p50 {:.2} ms\n\
         parse and signature check: {:.1} µs CPU\n",
        raw(|round| round.limits.raw.rows_per_second),
        raw(|round| round.limits.raw.cpu_us),
        raw(|round| round.limits.raw.commit_p50_ms),
        results.check_us,
    );
}

fn loads(out: &mut String, measured: &Measured) {
    let _ = writeln!(
        out,
        "{:<22} {:>9} {:>9} {:>9}   {:>28} {:>7}",
        "load", "per s", "p50 ms", "p99 ms", "CPU µs client+server+database", "others"
    );
    let count = measured.rounds.first().map_or(0, |round| round.log.fresh.len());
    for place in 0..count {
        row(out, measured, "HTTP echo", |round| Some(&round.limits.echo[place]));
    }
    for place in 0..count {
        row(out, measured, "peer", |round| round.limits.peer.get(place));
    }
    row(out, measured, "registrations", |round| Some(&round.log.alone));
    for place in 0..count {
        row(out, measured, "registrations", |round| Some(&round.log.fresh[place]));
    }
    row(out, measured, "known already", |round| Some(&round.log.again));
}

fn row<'a>(out: &mut String, measured: &'a Measured, name: &str, of: impl Fn(&'a Round) -> Option<&'a Load>) {
    let loads: Vec<&Load> = measured.rounds.iter().filter_map(of).collect();
    let Some(any) = loads.first() else { return };
    let middle = |of: fn(&Load) -> f64| median(loads.iter().map(|load| of(load)));
    let others: usize = loads.iter().flat_map(|load| load.others.values()).sum();
    let _ = writeln!(
        out,
        "{:<22} {:>9.0} {:>9.2} {:>9.2}   {:>6.1} + {:>5.1} + {:>5.1} = {:>5.1} {:>7}",
        format!("{name}, {}", any.clients),
        middle(|load| load.per_second),
        middle(|load| load.p50_ms),
        middle(|load| load.p99_ms),
        middle(|load| load.cpu.client_us),
        middle(|load| load.cpu.server_us),
        middle(|load| load.cpu.database_us),
        middle(|load| load.cpu.total()),
        others,
    );
}

fn goals(out: &mut String, results: &Results, measured: &Measured) {
    let _ = writeln!(out, "\n{:<5} {:>9} {:>8} {:>8}  goal", "", "measured", "must", "aim");
    for goal in GOALS {
        let value = goal.median(results, measured);
        if value.is_nan() {
            continue;
        }
        let verdict = match (goal.must.holds(value), goal.aim.holds(value)) {
            (_, true) => "",
            (true, false) => "  (short of the aim)",
            (false, false) => "  MISSED",
        };
        let (must, aim) = (goal.must.text(), goal.aim.text());
        let _ = writeln!(out, "{:<5} {value:>9.3} {must:>8} {aim:>8}  {}{verdict}", goal.name, goal.what);
    }
}

impl Goal {
    fn median(&self, results: &Results, measured: &Measured) -> f64 {
        measured.median(|round| (self.of)(results, round))
    }
}

impl Measured {
    fn median(&self, of: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(of))
    }
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Least(least) => value >= least,
            Most(most) => value <= most,
        }
    }

    fn text(self) -> String {
        match self {
            Least(least) => format!("≥ {least:.3}"),
            Most(most) => format!("≤ {most:.3}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_at_its_edge_and_not_for_what_was_not_measured() {
        assert!(Least(0.1).holds(0.1) && !Least(0.1).holds(0.099));
        assert!(Most(2.0).holds(2.0) && !Most(2.0).holds(2.001));
        assert!(!Least(0.1).holds(f64::NAN) && !Most(0.1).holds(f64::NAN));
    }
}
