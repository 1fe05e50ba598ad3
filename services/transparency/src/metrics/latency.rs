//! How long registrations spend in each stage: quantiles of the histogram `tabellion_register_duration_seconds`.

use prometheus::HistogramVec;
use prometheus::core::Metric;
use prometheus::proto::Bucket;

/// The stages of a registration, in their order: the values of the label `stage`.
pub const STAGES: [&str; 6] = ["parse", "verify", "policy", "queue", "commit", "sign"];

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

/// Returns the latency of each stage.
pub fn of_stages(durations: &HistogramVec) -> Vec<StageLatency> {
    let latency = |stage| {
        let metric = durations.with_label_values(&[stage]).metric();
        let histogram = metric.get_histogram();
        let count = histogram.get_sample_count();
        let quantile = |hundredths| quantile(histogram.get_bucket(), count, hundredths);
        StageLatency { stage, count, median: quantile(50), p99: quantile(99) }
    };
    STAGES.map(latency).to_vec()
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
        (0..98).for_each(|_| durations.with_label_values(&["parse"]).observe(0.0005));
        (0..2).for_each(|_| durations.with_label_values(&["parse"]).observe(0.05));
        durations.with_label_values(&["verify"]).observe(5.0);
        let latencies = of_stages(&durations);
        let parse = StageLatency { stage: "parse", count: 100, median: Some(0.001), p99: Some(0.1) };
        let verify = StageLatency { stage: "verify", count: 1, median: None, p99: None };
        let policy = StageLatency { stage: "policy", count: 0, median: None, p99: None };
        assert_eq!(latencies[..3], [parse, verify, policy]);
    }
}
