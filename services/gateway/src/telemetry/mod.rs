//! Telemetry for operators: metrics, and spans by the MCP conventions of OpenTelemetry.
//!
//! Label values come from short fixed lists: known methods, verdicts, reasons. Payloads, subjects, issuers and tool
//! names are never labels (a client can send any name, and each would create a series). The tool and the MCP session
//! are attributes of spans.
//!
//! Spans are part of the log's lines; with the feature `otlp` they are also exported to a collector (`span-export`).
//!
//! Not here: the counts of the decision writer ([`decision_writer::Status`](crate::decision_writer::WriterStatus)); they are read when metrics are
//! rendered.

mod answer_observer;
mod metered;
mod spans;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus::{Gauge, HistogramVec, IntCounter, IntCounterVec, IntGauge};
use serving::database_metrics::DatabaseMetrics;
use serving::http_metrics::HttpMetrics;
use serving::metrics::MetricRegistry;

use crate::decision_writer::WriterStatus;
pub use answer_observer::AnswerObserver;
pub use metered::Metered;
pub use spans::{SpanRequest, begun, is_sent};

/// The `tracing` target of the gateway's spans; nothing else uses it.
const TARGET: &str = "gateway::telemetry";

/// The gateway's spans, for an export.
#[cfg(feature = "otlp")]
pub const SPANS: span_export::ExportedSpans =
    span_export::ExportedSpans { service: "tabellion-gateway", targets: &[TARGET] };

/// Methods with a series of their own; all others count as `other`.
const METHODS: [&str; 27] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "notifications/cancelled",
    "notifications/initialized",
    "notifications/progress",
    "notifications/roots/list_changed",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tools/call",
    "tools/list",
    "vap/amend",
    "GET",
    "DELETE",
];
/// Upper bounds of the duration buckets, in seconds (those of the OpenTelemetry convention).
const BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0];

/// The metrics of one gateway.
pub struct Telemetry {
    registry: MetricRegistry,
    /// Metrics of requests to the listeners for clients and for approvers.
    pub http: Arc<HttpMetrics>,
    /// Metric of the operations of the evidence store.
    pub database: DatabaseMetrics,
    server: HistogramVec,
    client: HistogramVec,
    decisions: IntCounterVec,
    advised: IntCounterVec,
    judge: IntCounterVec,
    reloads: IntCounterVec,
    pending: IntGauge,
    pending_bytes: IntGauge,
    oldest: IntGauge,
    stuck: IntGauge,
    share: Gauge,
    failures: IntCounter,
    refused: IntCounter,
    commits: IntCounter,
    records: IntCounter,
    conflicts: IntCounter,
    sessions: IntGauge,
    questions: IntGauge,
    waiting_for_cost: IntGauge,
    clock_ahead: Gauge,
    rendering: Mutex<()>,
}

impl Telemetry {
    /// Makes the metrics, all at zero.
    ///
    /// # Errors
    /// Only if a metric's name is invalid or repeated.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = MetricRegistry::default();
        let durations = |name: &str, help: &str| {
            registry.histograms(name, help, &BUCKETS, &["mcp_method_name", "error_type"])
        };
        Ok(Self {
            http: Arc::new(HttpMetrics::new(&registry)?),
            database: DatabaseMetrics::new(&registry)?,
            server: durations("mcp_server_operation_duration_seconds", "requests, as clients see them")?,
            client: durations("mcp_client_operation_duration_seconds", "exchanges with servers")?,
            decisions: registry.counters("gateway_decisions_total", "verdicts", &["decision", "rule"])?,
            advised: registry.counters(
                "gateway_advised_total",
                "verdicts that rules would have given on calls that the posture advisory let through",
                &["decision", "rule"],
            )?,
            judge: registry.counters(
                "gateway_judge_questions_total",
                "questions to the judge",
                &["finding"],
            )?,
            reloads: registry.counters(
                "gateway_config_reloads_total",
                "configurations read again",
                &["result"],
            )?,
            pending: registry.gauge("gateway_evidence_pending_records", "records that wait for the log")?,
            pending_bytes: registry.gauge("gateway_evidence_pending_bytes", "bytes of them")?,
            oldest: registry.gauge("gateway_evidence_oldest_seconds", "the age of the oldest of them")?,
            stuck: registry
                .gauge("gateway_evidence_stuck_records", "records that the log refuses for good")?,
            failures: registry.counter(
                "gateway_evidence_failures_total",
                "commits in doubt, refused records, and streams that the database set back",
            )?,
            refused: registry.counter("gateway_evidence_refused_total", "records that the log refused")?,
            commits: registry.counter("gateway_evidence_commits_total", "transactions")?,
            records: registry.counter("gateway_evidence_records_total", "records in them")?,
            conflicts: registry.counter(
                "gateway_evidence_conflicts_total",
                "commits decided again: another process was first, or a message was used before",
            )?,
            sessions: registry.gauge("gateway_sessions_in_memory", "sessions in memory")?,
            questions: registry.gauge("gateway_open_questions", "questions that wait for an approver")?,
            waiting_for_cost: registry.gauge(
                "gateway_calls_waiting_for_cost",
                "calls that wait until the cost of an earlier one is known",
            )?,
            clock_ahead: registry.fraction(
                "gateway_clock_ahead_seconds",
                "the time by which the clock is ahead of the database server's; negative if behind, 0 with SQLite",
            )?,
            share: registry
                .fraction("gateway_evidence_used_ratio", "the part of the outbox that is taken")?,
            rendering: Mutex::default(),
            registry,
        })
    }

    /// Counts a verdict: `served`, `downgraded`, `clarify` or `denied`, with the code of its reason, if any.
    pub fn decided(&self, decision: &str, rule: Option<&str>) {
        self.decisions.with_label_values(&[decision, rule.unwrap_or("none")]).inc();
    }

    /// Counts a call that the posture `advisory` let through: with the verdict that the rules would have given, and the
    /// code of its reason, if any.
    pub fn advised(&self, decision: &str, rule: Option<&str>) {
        self.advised.with_label_values(&[decision, rule.unwrap_or("none")]).inc();
    }

    /// Records the duration of a client's request. `failure` is the HTTP status or the JSON-RPC code, if it was not a
    /// success.
    pub fn served(&self, method: &str, failure: Option<&str>, took: Duration) {
        observe(&self.server, method, failure, took);
    }

    /// Records the duration of an exchange with a server. `failure` is the HTTP status or the kind of error, if it was
    /// not a success.
    pub fn exchanged(&self, method: &str, failure: Option<&str>, took: Duration) {
        observe(&self.client, method, failure, took);
    }

    /// Counts a question to the judge by its finding: `consistent`, `inconsistent`, `unsure` or `failed`.
    pub fn judged(&self, finding: &str) {
        self.judge.with_label_values(&[finding]).inc();
    }

    /// Counts a reload of the configuration: `taken` or `refused`.
    pub fn reloaded(&self, result: &str) {
        self.reloads.with_label_values(&[result]).inc();
    }

    /// Renders the metrics in the text format of Prometheus, with the current status of the decision writer.
    ///
    /// # Errors
    /// If a metric cannot be encoded.
    pub fn render(&self, status: &WriterStatus) -> Result<String, prometheus::Error> {
        self.pending.set(signed(status.backlog.records));
        self.pending_bytes.set(signed(status.backlog.bytes));
        self.stuck.set(signed(status.backlog.stuck));
        self.oldest.set(signed(status.oldest_age));
        self.share.set(status.outbox_share);
        {
            // Two concurrent renderings would count the same increase twice.
            let _alone = self.rendering.lock().unwrap_or_else(PoisonError::into_inner);
            raise(
                &self.failures,
                status.doubtful.saturating_add(status.refused).saturating_add(status.set_back),
            );
            raise(&self.refused, status.refused);
            raise(&self.commits, status.commits);
            raise(&self.records, status.records);
            raise(&self.conflicts, status.conflicts);
        }
        self.sessions.set(signed(status.sessions_in_memory));
        self.questions.set(signed(status.open_questions));
        self.waiting_for_cost.set(signed(status.waiting_for_cost));
        self.clock_ahead.set(status.clock_difference.unwrap_or_default().seconds());
        self.registry.text()
    }
}

/// The label value of a method.
fn known(method: &str) -> &'static str {
    METHODS.into_iter().find(|known| *known == method).unwrap_or("other")
}

fn observe(durations: &HistogramVec, method: &str, failure: Option<&str>, took: Duration) {
    durations.with_label_values(&[known(method), failure.unwrap_or("")]).observe(took.as_secs_f64());
}

/// Raises a counter to a value that was counted elsewhere.
fn raise(counter: &IntCounter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn text(telemetry: &Telemetry) -> String {
        telemetry.render(&WriterStatus::default()).unwrap()
    }

    #[test]
    fn decisions_are_counted_by_verdict_and_reason() {
        let telemetry = Telemetry::new().unwrap();
        telemetry.decided("denied", Some("no_commitment"));
        telemetry.decided("served", None);
        let text = text(&telemetry);
        assert!(
            text.contains("gateway_decisions_total{decision=\"denied\",rule=\"no_commitment\"} 1"),
            "{text}"
        );
        assert!(text.contains("gateway_decisions_total{decision=\"served\",rule=\"none\"} 1"), "{text}");
        assert!(
            text.contains("gateway_evidence_pending_records 0")
                && text.contains("gateway_evidence_failures_total 0")
        );
    }

    #[test]
    fn a_counter_follows_what_was_counted_elsewhere_and_never_goes_back() {
        let telemetry = Telemetry::new().unwrap();
        let rendered = |commits: u64| {
            let status = WriterStatus { commits, ..WriterStatus::default() };
            telemetry.render(&status).unwrap()
        };
        for (counted, shown) in [(0, 0), (3, 3), (3, 3), (7, 7), (2, 7)] {
            let text = rendered(counted);
            assert!(text.contains(&format!("\ngateway_evidence_commits_total {shown}\n")), "{text}");
        }
    }

    #[test]
    fn a_stranger_s_method_makes_no_series_of_its_own() {
        let telemetry = Telemetry::new().unwrap();
        telemetry.served("tools/call", None, Duration::from_millis(3));
        telemetry.served("alice@example.com", Some("404"), Duration::from_millis(3));
        let text = text(&telemetry);
        assert!(
            text.contains("mcp_method_name=\"tools/call\"") && text.contains("mcp_method_name=\"other\"")
        );
        assert!(!text.contains("alice"), "{text}");
    }
}
