//! Metrics as Prometheus has them: families of one name, whose members differ in labels.

use ackline::runtime::stats::Distribution;
use prometheus::TextEncoder;
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use std::time::Duration;

/// Before each name.
const PREFIX: &str = "ackline_";

/// Upper bounds of the buckets of lateness, in microseconds.
const BOUNDS: [u64; 14] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 10_000, 100_000, 1_000_000];

/// Names and values of labels.
type Labels<'a> = &'a [(&'a str, &'a str)];

/// All that is told at once.
#[derive(Default)]
pub(super) struct Families(Vec<MetricFamily>);

impl Families {
    /// A count of events since the stack began. `_total` comes behind its name.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help, &[(&[], value)]);
    }

    /// The same with labels.
    pub(super) fn counters(&mut self, name: &str, help: &str, values: &[(Labels<'_>, u64)]) {
        let metrics = values.iter().map(|(labels, value)| {
            let mut counter = Counter::default();
            counter.set_value(*value as f64);
            let mut metric = labelled(labels);
            metric.set_counter(counter);
            metric
        });
        self.add(&format!("{name}_total"), help, MetricType::COUNTER, metrics.collect());
    }

    /// What is so now.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.gauges(name, help, &[(&[], value)]);
    }

    /// The same with labels.
    pub(super) fn gauges(&mut self, name: &str, help: &str, values: &[(Labels<'_>, f64)]) {
        let metrics = values.iter().map(|(labels, value)| {
            let mut gauge = Gauge::default();
            gauge.set_value(*value);
            let mut metric = labelled(labels);
            metric.set_gauge(gauge);
            metric
        });
        self.add(name, help, MetricType::GAUGE, metrics.collect());
    }

    /// A distribution of times, in seconds.
    pub(super) fn histogram(&mut self, name: &str, help: &str, times: &Distribution) {
        let buckets = BOUNDS.map(|micros| {
            let bound = Duration::from_micros(micros);
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound.as_secs_f64());
            bucket.set_cumulative_count(times.at_most(bound.into()));
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_sample_count(times.count());
        histogram.set_sample_sum(times.mean().as_secs_f64() * times.count() as f64);
        histogram.set_bucket(buckets.to_vec());
        let mut metric = Metric::default();
        metric.set_histogram(histogram);
        self.add(name, help, MetricType::HISTOGRAM, vec![metric]);
    }

    fn add(&mut self, name: &str, help: &str, kind: MetricType, metrics: Vec<Metric>) {
        let mut family = MetricFamily::default();
        family.set_name(format!("{PREFIX}{name}"));
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        family.set_metric(metrics);
        // The encoder takes no family without members.
        if !family.get_metric().is_empty() {
            self.0.push(family);
        }
    }

    /// In the text format.
    pub(super) fn text(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.0)
    }
}

fn labelled(labels: Labels<'_>) -> Metric {
    let pairs = labels.iter().map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    });
    let mut metric = Metric::default();
    metric.set_label(pairs.collect());
    metric
}
