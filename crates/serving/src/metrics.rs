//! A registry of Prometheus metrics: each metric is created and registered in one call.

use prometheus::core::Collector;
use prometheus::{
    Error, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry, TextEncoder,
};

/// The metrics of one daemon.
#[derive(Clone, Debug, Default)]
pub struct MetricRegistry(Registry);

impl MetricRegistry {
    /// Registers a counter.
    ///
    /// # Errors
    /// If the name is invalid or taken, here and below.
    pub fn counter(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.register(IntCounter::new(name, help)?)
    }

    /// Registers a counter with labels.
    pub fn counters(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, Error> {
        self.register(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    /// Registers a gauge of whole numbers.
    pub fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.register(IntGauge::new(name, help)?)
    }

    /// Registers a gauge of whole numbers with labels.
    pub fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, Error> {
        self.register(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    /// Registers a gauge of fractions.
    pub fn fraction(&self, name: &str, help: &str) -> Result<Gauge, Error> {
        self.register(Gauge::new(name, help)?)
    }

    /// Registers a histogram with these upper bounds.
    pub fn histogram(&self, name: &str, help: &str, bounds: &[f64]) -> Result<Histogram, Error> {
        self.register(Histogram::with_opts(HistogramOpts::new(name, help).buckets(bounds.to_vec()))?)
    }

    /// Registers a histogram with these upper bounds and labels.
    pub fn histograms(
        &self,
        name: &str,
        help: &str,
        bounds: &[f64],
        labels: &[&str],
    ) -> Result<HistogramVec, Error> {
        self.register(HistogramVec::new(HistogramOpts::new(name, help).buckets(bounds.to_vec()), labels)?)
    }

    /// Renders the metrics in Prometheus's text format.
    ///
    /// # Errors
    /// If a metric cannot be encoded.
    pub fn text(&self) -> Result<String, Error> {
        TextEncoder::new().encode_to_string(&self.0.gather())
    }

    /// Renders the metrics and those of the process (memory, descriptors, start time).
    ///
    /// # Errors
    /// If a metric cannot be encoded.
    pub fn text_with_process(&self) -> Result<String, Error> {
        let mut families = self.0.gather();
        families.extend(prometheus::gather());
        TextEncoder::new().encode_to_string(&families)
    }

    fn register<C: Collector + Clone + 'static>(&self, metric: C) -> Result<C, Error> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}
