//! Prometheus metrics of the monitor. Label values are names from the configuration, never text from a log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec};
use serving::http_metrics::HttpMetrics;
use serving::metrics::MetricRegistry;

use crate::alarm::{Alarm, AlarmKind, MonitorExit};
use crate::alarm_list::AlarmList;
use crate::check_name::CheckName;
use crate::round::{Outcome, Round};
use crate::webhook::Pass;

/// All metrics of a monitor.
pub struct Metrics {
    registry: MetricRegistry,
    /// Metrics of the requests on the listener.
    pub http: Arc<HttpMetrics>,
    last_check: IntGaugeVec,
    inconsistency: IntCounterVec,
    rounds: IntCounterVec,
    requests: IntCounterVec,
    verified: IntGaugeVec,
    freshness: IntGaugeVec,
    alarms: IntGaugeVec,
    index_heads: IntGaugeVec,
    index_size: IntGaugeVec,
    not_kept: IntCounter,
    webhooks: IntCounterVec,
    webhooks_waiting: IntGauge,
    cosigned: Mutex<HashMap<String, u64>>,
    logs: Vec<String>,
}

impl Metrics {
    /// Creates the metrics of these logs, all at zero: `rate()` would miss the first event of a counter that appears
    /// with it.
    ///
    /// # Errors
    /// If two metrics have the same name.
    pub fn new<'a>(logs: impl IntoIterator<Item = &'a str>) -> Result<Self, prometheus::Error> {
        let registry = MetricRegistry::default();
        let metrics = Self {
            http: Arc::new(HttpMetrics::new(&registry)?),
            last_check: registry.gauges(
                "tabellion_monitor_last_check_timestamp_seconds",
                "When a log's checkpoint was last verified to extend the one before",
                &["log"],
            )?,
            inconsistency: registry.counters(
                "tabellion_monitor_inconsistency_total",
                "Alarms of misbehaviour raised against a log; standing ones count at the start",
                &["log"],
            )?,
            rounds: registry.counters(
                "tabellion_monitor_rounds_total",
                "Rounds of a log, by result",
                &["log", "result"],
            )?,
            requests: registry.counters(
                "tabellion_monitor_requests_total",
                "Requests sent to a log",
                &["log"],
            )?,
            verified: registry.gauges(
                "tabellion_monitor_verified_size_leaves",
                "Leaves up to which a log is proven consistent",
                &["log"],
            )?,
            freshness: registry.gauges(
                "tabellion_monitor_freshness_age_seconds",
                "Age of the newest cosignature of a known witness",
                &["log"],
            )?,
            alarms: registry.gauges(
                "tabellion_monitor_alarms",
                "Alarms that stand, by kind",
                &["log", "kind"],
            )?,
            index_heads: registry.gauges(
                "tabellion_monitor_index_heads",
                "Heads of a log's search index that were computed again, by result",
                &["log", "result"],
            )?,
            index_size: registry.gauges(
                "tabellion_monitor_index_size_leaves",
                "Leaves of the newest head of the search index without a fault",
                &["log"],
            )?,
            not_kept: registry.counter(
                "tabellion_monitor_not_kept_total",
                "Rounds and messages that could not be written to the state directory",
            )?,
            webhooks: registry.counters(
                "tabellion_monitor_webhooks_total",
                "Attempts to deliver a webhook by how they ended",
                &["result"],
            )?,
            webhooks_waiting: registry
                .gauge("tabellion_monitor_webhooks_waiting", "Webhooks that did not arrive yet")?,
            cosigned: Mutex::default(),
            logs: logs.into_iter().map(str::to_owned).collect(),
            registry,
        };
        metrics.logs.iter().for_each(|log| metrics.name(log));
        for result in ["delivered", "failed", "given-up"] {
            metrics.webhooks.with_label_values(&[result]);
        }
        Ok(metrics)
    }

    fn name(&self, log: &str) {
        self.inconsistency.with_label_values(&[log]);
        self.requests.with_label_values(&[log]);
        self.last_check.with_label_values(&[log]);
        for result in MonitorExit::ALL {
            self.rounds.with_label_values(&[log, result.name()]);
        }
        for kind in AlarmKind::ALL {
            self.alarms.with_label_values(&[log, kind.name()]);
        }
    }

    /// Records a round.
    pub(crate) fn round(&self, round: &Round) {
        let log = round.log.as_str();
        self.rounds.with_label_values(&[log, round.exit().name()]).inc();
        self.requests.with_label_values(&[log]).inc_by(round.cost.requests);
        if let Some(index) = &round.index {
            for (result, heads) in
                [("right", index.right), ("wrong", index.wrong), ("uncompared", index.uncompared)]
            {
                self.index_heads.with_label_values(&[log, result]).set(signed(heads));
            }
            self.index_size.with_label_values(&[log]).set(signed(index.newest));
        }
        if let Some(verified) = round.verified {
            self.verified.with_label_values(&[log]).set(signed(verified));
        }
        if round.outcome(CheckName::Consistency) == Some(Outcome::Ok) {
            self.last_check.with_label_values(&[log]).set(signed(round.at));
        }
        if let Some(at) = round.shown.as_ref().and_then(|shown| shown.cosigned_at)
            && let Ok(mut cosigned) = self.cosigned.lock()
        {
            cosigned.insert(log.to_owned(), at);
        }
    }

    /// Counts the alarms that stood before the process started, so that an inconsistency survives a restart.
    pub(crate) fn stand_at_start(&self, alarms: &AlarmList) {
        alarms.standing().iter().for_each(|standing| self.raised(&standing.alarm));
        self.stands(alarms);
    }

    /// Counts a new alarm if it is misbehaviour.
    pub(crate) fn raised(&self, alarm: &Alarm) {
        if alarm.kind.exit() == MonitorExit::Misbehaviour {
            self.inconsistency.with_label_values(&[&alarm.log]).inc();
        }
    }

    /// Sets the gauges of standing alarms.
    pub(crate) fn stands(&self, alarms: &AlarmList) {
        let mut counts: HashMap<(&str, AlarmKind), i64> = HashMap::new();
        for key in alarms.counts() {
            *counts.entry(key).or_default() += 1;
        }
        for log in &self.logs {
            for kind in AlarmKind::ALL {
                let count = counts.get(&(log.as_str(), *kind)).copied().unwrap_or(0);
                self.alarms.with_label_values(&[log.as_str(), kind.name()]).set(count);
            }
        }
    }

    /// Counts a round that could not be saved.
    pub(crate) fn not_kept(&self) {
        self.not_kept.inc();
    }

    /// Counts a webhook message that could not be queued.
    pub(crate) fn not_told(&self) {
        self.not_kept.inc();
    }

    /// Records a pass over the webhook queue.
    pub fn webhooks(&self, pass: Pass, waiting: usize) {
        for (result, count) in
            [("delivered", pass.delivered), ("failed", pass.failed), ("given-up", pass.given_up)]
        {
            self.webhooks.with_label_values(&[result]).inc_by(count);
        }
        self.webhooks_waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    /// All metrics in Prometheus's text format.
    ///
    /// # Errors
    /// If the metrics cannot be encoded.
    pub fn text(&self) -> Result<String, prometheus::Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if let Ok(cosigned) = self.cosigned.lock() {
            for (log, at) in cosigned.iter() {
                self.freshness.with_label_values(&[log]).set(signed(now.saturating_sub(*at)));
            }
        }
        self.registry.text_with_process()
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
