//! What a command counts beside its stack, for `nstat` and `--metrics`: what `--pcap` and `--trace`
//! have recorded and lost so far, and a proxy's connections and flows.

use ackline_observe::Meter;
use ackline_proxy::Kind;

/// The counters of a command's capture and trace, zeros of what it does not have; and of its proxy,
/// if it is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedCounters {
    pub(crate) capture: Meter,
    pub(crate) trace: Meter,
    pub(crate) proxy: Option<ackline_proxy::Meter>,
}

/// A counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedCounter {
    /// `nstat`'s name.
    pub(crate) name: &'static str,
    /// The metric's.
    pub(crate) metric: &'static str,
    pub(crate) meaning: &'static str,
    /// It is what is so now, and may become less.
    pub(crate) is_gauge: bool,
    pub(crate) value: u64,
}

impl RecordedCounters {
    /// Each counter, in a fixed order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RecordedCounter> {
        let (capture, trace) = (self.capture.read(), self.trace.read());
        let counter =
            |name, metric, meaning, value| RecordedCounter { name, metric, meaning, is_gauge: false, value };
        let proxy = self.proxy.iter().flat_map(|meter| meter.read().each());
        let proxy = proxy.map(|counted| RecordedCounter {
            name: counted.name,
            metric: counted.metric,
            meaning: counted.meaning,
            is_gauge: counted.kind == Kind::Gauge,
            value: counted.value,
        });
        [
            counter(
                "AcklineCapturePackets",
                "capture_packets",
                "Packets that --pcap has written.",
                capture.written,
            ),
            counter(
                "AcklineCaptureDropped",
                "capture_dropped",
                "Packets missing in the file of --pcap because its queue was full.",
                capture.dropped,
            ),
            counter(
                "AcklineCaptureUnwritten",
                "capture_unwritten",
                "Packets missing in the file of --pcap because it is cut short.",
                capture.unwritten,
            ),
            counter(
                "AcklineTraceRecords",
                "trace_records",
                "Records that --trace has written.",
                trace.written,
            ),
            counter(
                "AcklineTraceDropped",
                "trace_dropped",
                "Events missing in the file of --trace because its queue was full.",
                trace.dropped,
            ),
            counter(
                "AcklineTraceUnwritten",
                "trace_unwritten",
                "Records missing in the file of --trace because it is cut short.",
                trace.unwritten,
            ),
        ]
        .into_iter()
        .chain(proxy)
    }
}
