//! The service's metrics, read from Prometheus's text format.

use crate::result::Stage;

/// Histogram of the time that registrations spend in each stage.
const STAGES: &str = "tabellion_register_duration_seconds";

/// Values of the metrics at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metrics {
    /// Number of committed batches.
    pub(crate) batches: f64,
    /// Number of signatures over tree heads, of both kinds.
    pub(crate) signatures: f64,
    /// Leaves of the newest published tree.
    pub(crate) leaves: f64,
    /// Committed leaves that searches do not find yet.
    pub(crate) index_lag: f64,
    /// Stage, number of observations, and their sum in seconds.
    stages: Vec<(String, f64, f64)>,
}

impl Metrics {
    /// Reads the metrics; an absent one is 0.
    pub(crate) fn parse(text: &str) -> Self {
        let stages = text.lines().filter_map(|line| labelled(line, &format!("{STAGES}_count")));
        let sum = |stage: &str| {
            let mut sums = text.lines().filter_map(|line| labelled(line, &format!("{STAGES}_sum")));
            sums.find(|(name, _)| *name == stage).map_or(0.0, |(_, seconds)| seconds)
        };
        Self {
            batches: plain(text, "tabellion_sequence_batch_entries_count"),
            signatures: plain(text, "tabellion_head_signatures_total"),
            leaves: plain(text, "tabellion_tree_size_leaves"),
            index_lag: plain(text, "tabellion_index_lag_leaves"),
            stages: stages.map(|(stage, count)| (stage.to_owned(), count, sum(stage))).collect(),
        }
    }

    /// Adds the counters of another process.
    pub(crate) fn add(&mut self, other: &Self) {
        self.batches += other.batches;
        self.signatures += other.signatures;
        self.leaves = self.leaves.max(other.leaves);
        self.index_lag = self.index_lag.max(other.index_lag);
        for (stage, count, seconds) in &other.stages {
            match self.stages.iter_mut().find(|(name, ..)| name == stage) {
                Some(own) => (own.1, own.2) = (own.1 + count, own.2 + seconds),
                None => self.stages.push((stage.clone(), *count, *seconds)),
            }
        }
    }

    /// Returns the mean time in each stage since an earlier reading, without stages that were not passed.
    pub(crate) fn stages_since(&self, before: &Self) -> Vec<Stage> {
        let earlier = |name: &str| {
            let found = before.stages.iter().find(|(stage, ..)| stage == name);
            found.map_or((0.0, 0.0), |(_, count, seconds)| (*count, *seconds))
        };
        let stages = self.stages.iter().map(|(stage, count, seconds)| {
            let (count_before, seconds_before) = earlier(stage);
            let count = count - count_before;
            Stage { stage: stage.clone(), count, mean_us: (seconds - seconds_before) * 1e6 / count }
        });
        stages.filter(|stage| stage.count > 0.0).collect()
    }
}

/// Returns the value of a metric without labels; 0 if it is absent.
fn plain(text: &str, name: &str) -> f64 {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(value).unwrap_or(0.0)
}

/// Returns the label `stage`, the only one, and the value of a line of this metric.
fn labelled<'a>(line: &'a str, name: &str) -> Option<(&'a str, f64)> {
    let rest = line.strip_prefix(name)?.strip_prefix("{stage=\"")?;
    let (stage, value) = rest.split_once("\"} ")?;
    Some((stage, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let text = "# TYPE a_total counter\na_total_other 7\na_total 12\n";
        assert_eq!(plain(text, "a_total"), 12.0);
        assert_eq!(plain(text, "a"), 0.0);
    }

    #[test]
    fn the_mean_of_a_stage_is_that_of_the_time_between_two_readings() {
        let text = |count: u32, sum: f64| {
            format!("{STAGES}_sum{{stage=\"verify\"}} {sum}\n{STAGES}_count{{stage=\"verify\"}} {count}\n")
        };
        let (before, mut after) = (Metrics::parse(&text(10, 1.0)), Metrics::parse(&text(20, 1.5)));
        let stages = after.stages_since(&before);
        assert_eq!((stages[0].stage.as_str(), stages[0].count), ("verify", 10.0));
        assert!((stages[0].mean_us - 50_000.0).abs() < 1e-6, "{stages:?}");
        assert_eq!(before.stages_since(&before), []);
        after.add(&before);
        assert_eq!(after.stages, [("verify".to_owned(), 30.0, 2.5)]);
    }
}
