//! Goals for ratios that one run can measure (`docs/readings.md`, G).

use crate::result::{BenchResult, DatabaseResult, LoadResult, Round};
use crate::stats::median;

/// A goal for a measured ratio.
pub(crate) struct Goal {
    /// Its label in `docs/readings.md`.
    pub(crate) label: &'static str,
    /// The ratio in words.
    pub(crate) ratio: &'static str,
    /// The bound that must hold.
    pub(crate) must: Bound,
    /// The bound that is the aim.
    pub(crate) aim: Bound,
    /// Computes the ratio; `None` if it was not measured.
    of: fn(&BenchResult, &Round) -> Option<f64>,
}

/// A bound of a ratio.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    Least(f64),
    Most(f64),
}

/// A goal with the median over all rounds.
pub(crate) struct MeasuredGoal {
    pub(crate) goal: &'static Goal,
    pub(crate) value: f64,
}

use Bound::{Least, Most};

/// All goals. G1, G4 and G9 need a peer, G10 a load with one client, G15 an open loop at twice the rate.
const GOALS: &[Goal] = &[
    Goal {
        label: "G1",
        ratio: "registrations/s ÷ the peer's, fewest clients above one",
        must: Least(0.75),
        aim: Least(0.90),
        of: |_, round| {
            Some(fewest(&round.log.closed)?.per_second / fewest(&round.yardsticks.peer)?.per_second)
        },
    },
    Goal {
        label: "G1",
        ratio: "registrations/s ÷ the peer's, most clients",
        must: Least(0.75),
        aim: Least(0.90),
        of: |_, round| Some(round.log.closed.last()?.per_second / round.yardsticks.peer.last()?.per_second),
    },
    Goal {
        label: "G2",
        ratio: "registrations/s ÷ raw rows/s",
        must: Least(0.10),
        aim: Least(0.16),
        of: |_, round| Some(best(&round.log.closed) / round.yardsticks.raw.as_ref()?.rows_per_second),
    },
    Goal {
        label: "G3",
        ratio: "registrations/s ÷ HTTP echo/s, most clients",
        must: Least(0.12),
        aim: Least(0.18),
        of: |_, round| Some(round.log.closed.last()?.per_second / round.yardsticks.echo.last()?.per_second),
    },
    Goal {
        label: "G4",
        ratio: "CPU of a registration ÷ the peer's, most clients",
        must: Most(1.3),
        aim: Most(1.1),
        of: |_, round| {
            // The CPU time of a peer that was not started here is not known.
            let peer = round.yardsticks.peer.last().filter(|load| load.cpu.service_us > 0.0)?;
            Some(round.log.closed.last()?.cpu.total() / peer.cpu.total())
        },
    },
    Goal {
        label: "G4'",
        ratio: "CPU of a registration ÷ its parts alone: echo, raw row, signature check",
        must: Most(2.6),
        aim: Most(1.9),
        of: |result, round| Some(round.log.closed.last()?.cpu.total() / parts_alone(result, round)?),
    },
    Goal {
        label: "G9",
        ratio: "p99 ÷ the peer's, fewest clients above one",
        must: Most(1.5),
        aim: Most(1.3),
        of: |_, round| Some(fewest(&round.log.closed)?.p99_ms / fewest(&round.yardsticks.peer)?.p99_ms),
    },
    Goal {
        label: "G10",
        ratio: "p50 of one client ÷ p50 of a one-row commit",
        must: Most(6.0),
        aim: Most(4.0),
        of: |_, round| {
            let alone = round.log.closed.iter().find(|load| load.clients == 1)?;
            Some(alone.p50_ms / round.yardsticks.raw.as_ref()?.commit_p50_ms)
        },
    },
    Goal {
        label: "G13",
        ratio: "p99 of a receipt ÷ its p50",
        must: Most(10.0),
        aim: Most(4.0),
        of: |_, round| Some(round.log.proofs.p99_ms / round.log.proofs.p50_ms),
    },
    Goal {
        label: "G14",
        ratio: "restart to first receipt, seconds",
        must: Most(2.0),
        aim: Most(1.0),
        of: |_, round| Some(round.log.restart_ms / 1e3),
    },
    Goal {
        label: "G15",
        ratio: "registrations/s at the highest offered rate ÷ those of the closed loop",
        must: Least(0.90),
        aim: Least(0.97),
        of: |_, round| Some(overloaded(round)?.per_second / round.log.closed.last()?.per_second),
    },
    Goal {
        label: "G15",
        ratio: "p99 of a refusal, ms",
        must: Most(20.0),
        aim: Most(10.0),
        of: |_, round| overloaded(round)?.refused_p99_ms,
    },
    Goal {
        label: "G16",
        ratio: "known statements/s ÷ new ones/s",
        must: Least(2.0),
        aim: Least(4.0),
        of: |_, round| Some(round.log.known.per_second / round.log.closed.last()?.per_second),
    },
    Goal {
        label: "G17",
        ratio: "write-ahead log of a registration − its statement, bytes",
        must: Most(450.0),
        aim: Most(330.0),
        of: |result, round| Some(round.log.counts.wal_bytes? - result.settings.statement_bytes as f64),
    },
    Goal {
        label: "G18",
        ratio: "signatures of each kind ÷ batches",
        must: Most(1.0),
        aim: Most(1.0),
        of: |_, round| Some(round.log.counts.signatures_per_batch / 2.0),
    },
    Goal {
        label: "G18",
        ratio: "batches ÷ registrations, most clients",
        must: Most(1.0 / 40.0),
        aim: Most(1.0 / 100.0),
        of: |_, round| Some(round.log.counts.batches),
    },
];

/// Returns the goals that a run has measured for a database.
pub(crate) fn measured(result: &BenchResult, database: &DatabaseResult) -> Vec<MeasuredGoal> {
    let value = |goal: &'static Goal| {
        let ratios = database.rounds.iter().filter_map(|round| (goal.of)(result, round));
        Some(MeasuredGoal { goal, value: median(ratios.filter(|ratio| ratio.is_finite()))? })
    };
    GOALS.iter().filter_map(value).collect()
}

/// Returns the sum of the costs of a registration's parts in microseconds of CPU time: echo, raw row, and signature
/// check.
fn parts_alone(result: &BenchResult, round: &Round) -> Option<f64> {
    let (echo, raw) = (round.yardsticks.echo.last()?, round.yardsticks.raw.as_ref()?);
    Some(echo.cpu.total() + raw.cpu_us + result.check_us)
}

/// Returns the open loop with the highest offered rate, if it was more than the service could take.
fn overloaded(round: &Round) -> Option<&LoadResult> {
    let offered = |load: &LoadResult| load.offered.unwrap_or(0.0);
    let highest = round.log.open.iter().max_by(|a, b| offered(a).total_cmp(&offered(b)))?;
    (offered(highest) > round.log.closed.last()?.per_second).then_some(highest)
}

/// Returns the load with the fewest clients above one.
fn fewest(loads: &[LoadResult]) -> Option<&LoadResult> {
    loads.iter().find(|load| load.clients > 1)
}

fn best(loads: &[LoadResult]) -> f64 {
    loads.iter().map(|load| load.per_second).fold(0.0, f64::max)
}

impl MeasuredGoal {
    /// Returns `aim`, `must` or `missed`.
    pub(crate) fn verdict(&self) -> &'static str {
        match (self.goal.must.holds(self.value), self.goal.aim.holds(self.value)) {
            (_, true) => "aim",
            (true, false) => "must",
            (false, false) => "missed",
        }
    }
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Least(least) => value >= least,
            Most(most) => value <= most,
        }
    }

    /// Returns the bound with its sign.
    pub(crate) fn text(self) -> String {
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
    fn a_bound_holds_at_its_edge() {
        assert!(Least(0.1).holds(0.1) && !Least(0.1).holds(0.099));
        assert!(Most(2.0).holds(2.0) && !Most(2.0).holds(2.001));
    }

    #[test]
    fn a_goal_without_its_measurement_is_left_out() {
        let result = crate::result::sample(&[100.0, 120.0, 110.0]);
        let goals = measured(&result, &result.databases[0]);
        let labels: Vec<&str> = goals.iter().map(|measured| measured.goal.label).collect();
        assert!(!labels.contains(&"G1") && labels.contains(&"G2") && labels.contains(&"G16"), "{labels:?}");
        let rate = goals.iter().find(|measured| measured.goal.label == "G2").unwrap();
        assert_eq!((rate.value, rate.verdict()), (0.11, "must"));
    }
}
