//! How long registrations spend in each stage: the histogram `tabellion_register_duration_seconds` and its quantiles.

use std::time::Duration;

use prometheus::core::Metric;
use prometheus::proto::Bucket;
use prometheus::{Histogram, HistogramVec};

/// A stage of a registration: a value of the label `stage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Parsing of the statement.
    Parse,
    /// Verification of the issuer's signature.
    Verify,
    /// The decision of the policy.
    Policy,
    /// The wait until the statement is in the log.
    Queue,
    /// The commit of a batch.
    Commit,
    /// The signatures over a head.
    Sign,
}

impl Stage {
    /// All stages, in their order.
    const ALL: [Self; 6] = [Self::Parse, Self::Verify, Self::Policy, Self::Queue, Self::Commit, Self::Sign];

    /// The value of the label `stage`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Verify => "verify",
            Self::Policy => "policy",
            Self::Queue => "queue",
            Self::Commit => "commit",
            Self::Sign => "sign",
        }
    }
}

/// The histogram of each stage, looked up once.
pub struct StageDurations([Histogram; Stage::ALL.len()]);

/// The time that one stage took since the process started.
#[derive(Clone, Debug, PartialEq)]
pub struct StageLatency {
    /// The stage.
    pub stage: &'static str,
    /// Number of observations.
    pub count: u64,
    /// Upper bound of the median in seconds; `None` without observations, or above the last bucket.
    pub median: Option<f64>,
    /// Upper bound of the 99th percentile in seconds; `None` as above.
    pub p99: Option<f64>,
}

impl StageDurations {
    /// The histograms of a vector with the label `stage`.
    pub fn of(durations: &HistogramVec) -> Self {
        Self(Stage::ALL.map(|stage| durations.with_label_values(&[stage.label()])))
    }

    /// Records the time spent in a stage.
    pub fn observe(&self, stage: Stage, took: Duration) {
        self.0[stage as usize].observe(took.as_secs_f64());
    }

    /// Returns the latency of each stage.
    pub fn latencies(&self) -> Vec<StageLatency> {
        let latency = |(stage, durations): (Stage, &Histogram)| {
            let metric = durations.metric();
            let histogram = metric.get_histogram();
            let count = histogram.get_sample_count();
            let quantile = |hundredths| quantile(histogram.get_bucket(), count, hundredths);
            StageLatency { stage: stage.label(), count, median: quantile(50), p99: quantile(99) }
        };
        Stage::ALL.into_iter().zip(&self.0).map(latency).collect()
    }
}

/// Returns the upper bound of the bucket that holds a quantile.
fn quantile(buckets: &[Bucket], count: u64, hundredths: u64) -> Option<f64> {
    let rank = count.saturating_mul(hundredths).div_ceil(100);
    let holding = buckets.iter().find(|bucket| bucket.cumulative_count() >= rank);
    holding.filter(|_| count > 0).map(Bucket::upper_bound)
}

#[cfg(test)]
mod tests {
    use prometheus::histogram_opts;

    use super::*;

    #[test]
    fn quantiles_are_the_upper_bounds_of_their_buckets() {
        let durations =
            HistogramVec::new(histogram_opts!("d", "d", vec![0.001, 0.01, 0.1]), &["stage"]).unwrap();
        let stages = StageDurations::of(&durations);
        (0..98).for_each(|_| stages.observe(Stage::Parse, Duration::from_micros(500)));
        (0..2).for_each(|_| stages.observe(Stage::Parse, Duration::from_millis(50)));
        stages.observe(Stage::Verify, Duration::from_secs(5));
        assert_eq!(durations.with_label_values(&["parse"]).get_sample_count(), 100);
        let latencies = stages.latencies();
        let parse = StageLatency { stage: "parse", count: 100, median: Some(0.001), p99: Some(0.1) };
        let verify = StageLatency { stage: "verify", count: 1, median: None, p99: None };
        let policy = StageLatency { stage: "policy", count: 0, median: None, p99: None };
        assert_eq!(latencies[..3], [parse, verify, policy]);
    }
}
