//! Which metrics there are. None is of one connection: the number of series does not grow with that
//! of connections.

use super::families::Families;
use crate::output::clock;
use crate::settings::PolicyNames;
use crate::watchers::filter::STATES;
use crate::watchers::recorded::RecordedCounters;
use crate::watchers::summary::Census;
use ackline::core::counters::Counters;
use ackline::runtime::Stack;
use ackline::runtime::stats::Stats;

/// What is told of one stack.
pub(super) struct Exposition {
    stack: Stack,
    names: PolicyNames,
    command: &'static str,
    recorded: RecordedCounters,
    /// Seconds since 1970.
    started: f64,
}

impl Exposition {
    pub(super) fn new(
        stack: Stack,
        names: PolicyNames,
        command: &'static str,
        recorded: RecordedCounters,
    ) -> Self {
        Self { stack, names, command, recorded, started: clock::micros_since_1970() as f64 / 1e6 }
    }

    /// Everything, in the text format. `refused`: clients that found too many others.
    pub(super) fn text(&self, refused: u64) -> Result<String, String> {
        let stats = self.stack.stats();
        let mut families = Families::default();
        self.identity(&mut families);
        connections(&mut families, &Census::of(&self.stack, &stats), &stats);
        counters(&mut families, &stats.counters);
        driver(&mut families, &stats);
        device(&mut families, &stats);
        egress(&mut families, &stats);
        self.scheduler(&mut families);
        self.recorded(&mut families);
        families.counter(
            "metrics_overflows",
            "Clients of the metrics refused because there were too many at once.",
            refused,
        );
        families.text().map_err(|error| error.to_string())
    }

    fn identity(&self, families: &mut Families) {
        let PolicyNames { cc, ack, rto, sched } = &self.names;
        let pid = std::process::id().to_string();
        families.gauges(
            "stack_info",
            "The command, and the policies of new connections.",
            &[(
                &[
                    ("command", self.command),
                    ("pid", &pid),
                    ("version", env!("CARGO_PKG_VERSION")),
                    ("cc", cc),
                    ("ack", ack),
                    ("rto", rto),
                    ("sched", sched),
                ],
                1.0,
            )],
        );
        families.gauge("start_time_seconds", "When the stack began, since 1970.", self.started);
    }

    fn recorded(&self, families: &mut Families) {
        for counter in self.recorded.iter() {
            let help = format!("{}: {}", counter.name, counter.meaning);
            if counter.is_gauge {
                families.gauge(counter.metric, &help, counter.value as f64);
            } else {
                families.counter(counter.metric, &help, counter.value);
            }
        }
    }

    fn scheduler(&self, families: &mut Families) {
        let scheduler = self.stack.scheduler();
        let labels: Vec<_> = scheduler
            .metrics
            .iter()
            .map(|metric| ([("sched", scheduler.name), ("variable", metric.name)], metric.value))
            .collect();
        let values: Vec<(&[_], f64)> = labels.iter().map(|(labels, value)| (&labels[..], *value)).collect();
        families.gauges(
            "scheduler_variable",
            "What the egress scheduler shows of itself (docs/metrics.md has the units).",
            &values,
        );
    }
}

fn connections(families: &mut Families, census: &Census, stats: &Stats) {
    let labels = STATES.map(|(_, name)| [("state", name)]);
    let states: Vec<(&[_], f64)> =
        labels.iter().zip(census.states).map(|(label, number)| (&label[..], number as f64)).collect();
    families.gauges("connections", "Connections by state, as ss names them, and listeners.", &states);
    let queues = [
        ("unacked", census.unacked),
        ("notsent", census.notsent),
        ("unread", census.unread),
        ("out_of_order", census.out_of_order),
    ]
    .map(|(part, bytes)| ([("part", part)], bytes as f64));
    let queues: Vec<(&[_], f64)> = queues.iter().map(|(label, bytes)| (&label[..], *bytes)).collect();
    families.gauges(
        "queue_bytes",
        "Payload in the buffers of all connections: sent and not acknowledged, written and not sent, received and not read, \
         received out of order.",
        &queues,
    );
    let gauges = [
        ("accept_queue", "Connections that wait to be accepted.", census.accept_queue as f64),
        (
            "fast_open_pending",
            "Connections accepted with their SYN, whose SYN-ACK is not acknowledged yet.",
            stats.fast_open_pending as f64,
        ),
        (
            "fast_open_entries",
            "Servers whose fast open cookie is remembered.",
            stats.fast_open_entries as f64,
        ),
        (
            "path_entries",
            "Destinations whose path is known to carry less than the device.",
            stats.path_entries as f64,
        ),
        (
            "incomplete_packets",
            "Packets of which some fragments have come, and not all.",
            stats.incomplete_packets as f64,
        ),
        ("udp_sockets", "UDP sockets that are not flows.", stats.udp_sockets as f64),
        (
            "memory_limit_bytes",
            "The budget for ackline_curr_memory; +Inf: none.",
            stats.max_memory.map_or(f64::INFINITY, |bytes| bytes as f64),
        ),
        ("memory_pressure", "1 while memory is under pressure.", f64::from(u8::from(stats.memory_pressure))),
        ("mtu_bytes", "Largest IP packet that the stack sends.", f64::from(stats.mtu)),
    ];
    for (name, help, value) in gauges {
        families.gauge(name, help, value);
    }
}

/// The core's counters. Their help begins with the name of `nstat`.
fn counters(families: &mut Families, counters: &Counters) {
    for (counter, (name, value)) in Counters::DESCRIPTIONS.iter().zip(counters.iter()) {
        let help = format!("{name}: {}", counter.meaning);
        if name.contains("Curr") {
            families.gauge(counter.field, &help, value as f64);
        } else {
            families.counter(counter.field, &help, value);
        }
    }
}

fn driver(families: &mut Families, stats: &Stats) {
    families.histogram(
        "departure_lateness_seconds",
        "How long after its permitted instant each departure began that pacing or a shaper held back.",
        &stats.departure_lateness,
    );
    families.histogram(
        "timer_lateness_seconds",
        "How long after its deadline each other wake-up was served.",
        &stats.timer_lateness,
    );
    let counters = [
        ("driver_runs", "Times that the driver ran.", stats.driver_runs),
        ("timer_expiries", "Of these, because its timer expired.", stats.timer_expiries),
        (
            "turn_waits",
            "Times that an application waited because its connection had had its turn.",
            stats.turn_waits,
        ),
        (
            "device_backlogs",
            "Times that packets began to wait in the device, because the stack or its applications did not keep up.",
            stats.device_backlogs,
        ),
        (
            "shard_packets_handed_over",
            "Packets that came to another shard's queue than their own, and were handed over.",
            stats.handed_over,
        ),
        (
            "shard_packets_handed_over_dropped",
            "Of these, dropped because their shard did not keep up or had stopped.",
            stats.handover_drops,
        ),
    ];
    for (name, help, value) in counters {
        families.counter(name, help, value);
    }
}

fn device(families: &mut Families, stats: &Stats) {
    let device = &stats.device;
    let pair =
        |received: u64, sent: u64| [([("direction", "received")], received), ([("direction", "sent")], sent)];
    let both = [
        (
            "device_packets",
            "Packets of the device; a super-packet counts once.",
            pair(device.rx_packets, device.tx_packets),
        ),
        ("device_bytes", "Their IP bytes.", pair(device.rx_bytes, device.tx_bytes)),
        (
            "device_super_packets",
            "Of the packets, those that stand for several segments.",
            pair(stats.rx_super_packets, stats.tx_super_packets),
        ),
    ];
    for (name, help, values) in both {
        let values: Vec<(&[_], u64)> = values.iter().map(|(label, value)| (&label[..], *value)).collect();
        families.counters(name, help, &values);
    }
    let counters = [
        ("device_malformed", "Packets dropped as shorter than a header, or cut.", device.rx_malformed),
        (
            "device_kernel_drops",
            "Packets dropped by the kernel because the receive queue was full.",
            device.rx_kernel_drops,
        ),
        ("device_full", "Sends that found the device full.", device.tx_full),
        ("device_down_sends", "Sends that found the interface down.", device.tx_down),
        ("device_errors", "Sends that the device refused for another reason.", device.tx_errors),
        ("device_refused", "Packets that the device refused for good.", stats.device_drops),
        ("neighbour_failures", "Neighbours that did not answer.", device.neighbours.failures),
        (
            "neighbour_conflicts",
            "Messages of other hosts that use an address of this one.",
            device.neighbours.conflicts,
        ),
        (
            "neighbour_packets_dropped",
            "Packets dropped because too many waited for a neighbour's address.",
            device.neighbours.waiting_dropped,
        ),
        (
            "neighbour_packets_failed",
            "Packets dropped because the neighbour for whose address they waited did not answer.",
            device.neighbours.waiting_failed,
        ),
        (
            "dhcp_granted",
            "Messages of DHCP, of either version, that offered or confirmed an address, or told settings.",
            device.neighbours.leases_granted,
        ),
        (
            "dhcp_refused",
            "Requests of DHCP, of either version, for another host's address, or when none was left.",
            device.neighbours.leases_refused,
        ),
        (
            "router_advertisements",
            "Router advertisements sent.",
            device.neighbours.router_advertisements_sent,
        ),
    ];
    for (name, help, value) in counters {
        families.counter(name, help, value);
    }
    families.gauge("device_up", "0 while the interface is down.", f64::from(u8::from(!device.down)));
}

fn egress(families: &mut Families, stats: &Stats) {
    let kinds: Vec<_> = stats.egress.iter().map(|(kind, figures)| ([("kind", kind)], *figures)).collect();
    let mut add = |name, help, value: fn(&ackline::core::queueing::ClassStats) -> u64| {
        let values: Vec<(&[_], u64)> =
            kinds.iter().map(|(label, figures)| (&label[..], value(figures))).collect();
        families.counters(name, help, &values);
    };
    add("egress_packets", "Packets sent, by kind.", |figures| figures.packets);
    add("egress_bytes", "Their IP bytes; a super-packet counts one header.", |figures| figures.bytes);
    add("egress_queued", "Packets that went through the egress scheduler's queue.", |figures| figures.queued);
    let delays: Vec<_> =
        kinds.iter().map(|(label, figures)| (&label[..], figures.delay_p99.as_secs_f64())).collect();
    families.gauges(
        "egress_delay_p99_seconds",
        "99th percentile of the time in that queue since the stack began.",
        &delays,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline::core::ConnConfig;
    use ackline::runtime::device::channel::{Channel, ChannelConfig};
    use serde_json::Value;
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;

    /// Each measurement of [`Stats`], and the metric that has it; "" if none does.
    const METRICS: [(&str, &str); 64] = [
        ("departure_lateness", "departure_lateness_seconds"),
        ("timer_lateness", "timer_lateness_seconds"),
        // Gaps are those of a single sender, and Prometheus would add up those of all. `-v` and
        // `--json` of a transfer have them.
        ("departure_gaps", ""),
        ("data_gaps", ""),
        ("awake", ""),
        ("wakes_early_by", ""),
        ("driver_runs", "driver_runs_total"),
        ("timer_expiries", "timer_expiries_total"),
        ("device_drops", "device_refused_total"),
        ("turn_waits", "turn_waits_total"),
        ("device_backlogs", "device_backlogs_total"),
        ("handed_over", "shard_packets_handed_over_total"),
        // As many as were handed over and not dropped, once all have been taken.
        ("taken_over", ""),
        ("handover_drops", "shard_packets_handed_over_dropped_total"),
        ("rx_super_packets", "device_super_packets_total"),
        ("tx_super_packets", "device_super_packets_total"),
        ("connections", "connections"),
        ("half_open", "connections"),
        ("held_syns", "curr_held_syns"),
        ("fast_open_pending", "fast_open_pending"),
        ("fast_open_entries", "fast_open_entries"),
        ("orphans", "tcp_curr_orphans"),
        ("time_wait", "connections"),
        ("memory", "curr_memory"),
        ("max_memory", "memory_limit_bytes"),
        ("memory_pressure", "memory_pressure"),
        ("path_entries", "path_entries"),
        ("incomplete_packets", "incomplete_packets"),
        ("udp_sockets", "udp_sockets"),
        ("udp_flows", "udp_curr_flows"),
        ("mtu", "mtu_bytes"),
        ("egress.ack", "egress_packets_total"),
        ("egress.data", "egress_packets_total"),
        ("egress.retransmit", "egress_packets_total"),
        ("egress.control", "egress_packets_total"),
        ("device.rx_packets", "device_packets_total"),
        ("device.rx_bytes", "device_bytes_total"),
        ("device.rx_malformed", "device_malformed_total"),
        ("device.rx_kernel_drops", "device_kernel_drops_total"),
        ("device.tx_packets", "device_packets_total"),
        ("device.tx_bytes", "device_bytes_total"),
        ("device.tx_full", "device_full_total"),
        ("device.tx_down", "device_down_sends_total"),
        ("device.tx_errors", "device_errors_total"),
        ("device.down", "device_up"),
        ("device.neighbours.failures", "neighbour_failures_total"),
        ("device.neighbours.conflicts", "neighbour_conflicts_total"),
        ("device.neighbours.waiting_dropped", "neighbour_packets_dropped_total"),
        ("device.neighbours.waiting_failed", "neighbour_packets_failed_total"),
        ("device.neighbours.leases_granted", "dhcp_granted_total"),
        ("device.neighbours.leases_refused", "dhcp_refused_total"),
        ("device.neighbours.router_advertisements_sent", "router_advertisements_total"),
        // What goes well on an Ethernet, and what a stranger there can make grow without harm.
        ("device.neighbours.requests_sent", ""),
        ("device.neighbours.requests_received", ""),
        ("device.neighbours.replies_sent", ""),
        ("device.neighbours.replies_received", ""),
        ("device.neighbours.resolved", ""),
        ("device.neighbours.changes", ""),
        ("device.neighbours.evictions", ""),
        ("device.neighbours.not_learned", ""),
        ("device.neighbours.invalid", ""),
        ("device.neighbours.defences", ""),
        ("device.neighbours.outgoing_dropped", ""),
        ("device.neighbours.waited", ""),
    ];

    /// The names of all measurements. The core's counters are told by their own table.
    fn measurements(stats: &Value) -> Vec<String> {
        let fields = |value: &Value| -> BTreeMap<String, Value> {
            serde_json::from_value(value.clone()).expect("a struct")
        };
        let mut names = Vec::new();
        for (name, value) in fields(stats) {
            match &*name {
                "counters" => {}
                "egress" => names.extend(fields(&value).into_keys().map(|kind| format!("egress.{kind}"))),
                "device" => {
                    for (name, value) in fields(&value) {
                        match &*name {
                            "neighbours" => names.extend(
                                fields(&value).into_keys().map(|name| format!("device.neighbours.{name}")),
                            ),
                            name => names.push(format!("device.{name}")),
                        }
                    }
                }
                _ => names.push(name),
            }
        }
        names.sort();
        names
    }

    #[tokio::test]
    async fn no_measurement_of_a_stack_is_forgotten() {
        let (near, _far) = Channel::pair(ChannelConfig::default());
        let builder =
            Stack::builder(near).address(Ipv4Addr::new(10, 0, 0, 1)).connections(ConnConfig::default());
        let stack = builder.spawn().expect("a stack");
        let stats = serde_json::to_value(stack.stats()).expect("JSON");
        let mut expected: Vec<&str> = METRICS.iter().map(|(name, _)| *name).collect();
        expected.sort_unstable();
        assert_eq!(measurements(&stats), expected, "a new measurement needs a metric, or a reason for none");
        let [cc, ack, rto, sched] = ["newreno", "delayed", "conventional", "fifo"].map(str::to_owned);
        let exposition =
            Exposition::new(stack, PolicyNames { cc, ack, rto, sched }, "send", RecordedCounters::default());
        let text = exposition.text(0).expect("text");
        for (name, metric) in METRICS.iter().filter(|(_, metric)| !metric.is_empty()) {
            assert!(text.contains(&format!("# TYPE ackline_{metric} ")), "{name} has no {metric} in {text}");
        }
    }
}
