//! The recorder tells what happened.

use crate::common::{link, pair, sink, transfer};
use ackline_netsim::app::Amount;
use ackline_netsim::impair::{DropList, Which};
use ackline_netsim::queue::{DropTail, Limit};
use ackline_netsim::record::{Record, RecordOptions, Recorder, TraceOptions};
use ackline_netsim::topologies::Duplex;
use ackline_netsim::{LinkSpec, Observer, Sim};
use ackline_tcp_core::{Duration, Instant};

fn run(options: RecordOptions, there: LinkSpec, seconds: u64) -> Record {
    run_in(Sim::new(1), options, there, seconds)
}

fn run_in(mut sim: Sim, options: RecordOptions, there: LinkSpec, seconds: u64) -> Record {
    let pair = pair(&mut sim, Duplex { there, back: link(10_000_000, 10) });
    sink(&mut sim, &pair.receiver);
    transfer(&mut sim, &pair.sender, &pair.receiver, Amount::Endless);
    let recorder = sim.add_observer(Recorder::new(options));
    sim.sample_every(Instant::ZERO, Duration::from_millis(10));
    sim.run_until(Instant::from_secs(seconds));
    sim.take_observer::<Recorder>(recorder).unwrap().record()
}

fn narrow() -> LinkSpec {
    link(10_000_000, 10).with_queue(Box::new(DropTail::new(Limit::Packets(50))))
}

/// Says that it watches departures, and does not.
#[derive(Debug)]
struct Watcher;

impl Observer for Watcher {}

#[test]
fn what_is_watched_changes_nothing_and_a_trace_may_hold_drops_alone() {
    let options = || RecordOptions {
        trace: Some(TraceOptions { only_drops: true, ..TraceOptions::default() }),
        ..RecordOptions::default()
    };
    let alone = run(options(), narrow(), 10);
    let mut sim = Sim::new(1);
    sim.add_observer(Watcher);
    let watched = run_in(sim, options(), narrow(), 10);
    assert_eq!(alone, watched);
    let rows = &alone.trace.as_ref().unwrap().rows;
    let drops = alone.queues.iter().filter_map(|queue| queue.samples.last()).map(|last| last.total.overflows);
    assert!(!rows.is_empty() && rows.iter().all(|row| row.dropped));
    assert_eq!(rows.len() as u64, drops.sum::<u64>());
}

#[test]
fn series_and_statistics_of_a_full_link() {
    let options = RecordOptions {
        from: Instant::from_secs(2),
        until: Instant::from_secs(10),
        exact_delays: 1_000,
        ..RecordOptions::default()
    };
    let record = run(options, narrow(), 10);

    assert_eq!((record.connections.len(), record.unrecorded_connections), (2, 0));
    let sender = &record.connections[0];
    assert_eq!(sender.cc, "reno");
    assert_eq!(sender.remote, "10.1.0.1:80");
    assert!(sender.samples.windows(2).all(|pair| pair[1].at_ns == pair[0].at_ns + 10_000_000));
    assert!(sender.samples.windows(2).all(|pair| pair[0].bytes_acked <= pair[1].bytes_acked));
    let last = sender.samples.last().unwrap();
    assert!(last.retransmits > 0 && last.ssthresh.is_some(), "the buffer overflowed: {last:?}");
    assert!(sender.samples.iter().any(|sample| sample.ca_state == "recovery"));

    let queue = &record.queues[0];
    assert_eq!((queue.queue.as_str(), queue.rate_bps), ("drop-tail", Some(10_000_000)));
    let window = queue.window.unwrap();
    assert_eq!((window.from_ns, window.until_ns), (2_000_000_000, 10_000_000_000));
    // The buffer is larger than the product of rate and delay (33 packets), so the link never
    // idles.
    assert!((window.utilisation() - 1.0).abs() < 1e-9, "{}", window.utilisation());
    assert!((window.throughput_bps() - 10e6).abs() < 12_000.0 / 8.0);
    assert!(queue.bins().all(|bin| (0.0..=1.0).contains(&bin.utilisation)));

    // A packet of 1,500 bytes takes 1.2 ms, and at most 50 of them and one in service are ahead of
    // another.
    let delay = &queue.delay;
    assert!(delay.max_ns <= 51 * 1_200_000 && delay.max_ns > 48 * 1_200_000, "{delay:?}");
    let packets = window.counters().delivered;
    assert!(delay.count.abs_diff(packets) <= 20, "{} and {packets}", delay.count);
    // Little's law: packets that wait = arrivals per second times their mean wait.
    let mut samples = queue.samples.iter().filter(|sample| sample.at_ns >= 2_000_000_000);
    let count = samples.clone().count() as f64;
    let mean_length = samples.by_ref().map(|sample| sample.packets as f64).sum::<f64>() / count;
    let expected = delay.count as f64 / 8.0 * delay.mean_ns / 1e9;
    assert!((mean_length - expected).abs() < 0.02 * expected, "{mean_length} packets, not {expected}");
    assert_eq!(delay.exact.len(), 1_000);
    assert_eq!(delay.omitted, delay.count - 1_000);
}

#[test]
fn memory_is_bounded() {
    let options = RecordOptions {
        max_points: 64,
        max_connections: 1,
        trace: Some(TraceOptions { limit: 100, ..TraceOptions::default() }),
        ..RecordOptions::default()
    };
    let record = run(options, narrow(), 10);
    assert_eq!((record.connections.len(), record.unrecorded_connections), (1, 1));
    let times: Vec<_> = record.queues[0].samples.iter().map(|sample| sample.at_ns).collect();
    // 1,001 instants: every sixteenth.
    assert_eq!(times, (0..63).map(|n| n * 160_000_000).collect::<Vec<_>>());
    let trace = record.trace.unwrap();
    assert_eq!(trace.rows.len(), 100);
    assert!(trace.omitted > 1_000);
}

#[test]
fn trace_says_what_was_dropped_and_sent_again() {
    let lossy = narrow().with_impairment(DropList::new(Which::NthData(vec![5])));
    let options = RecordOptions { trace: Some(TraceOptions::default()), ..RecordOptions::default() };
    let record = run(options, lossy, 1);
    let rows = record.trace.unwrap().rows;
    let dropped = rows.iter().find(|row| row.dropped).unwrap();
    assert_eq!((&*dropped.event, &*dropped.class, dropped.link), ("impairment", "data", 0));
    let seq = dropped.tcp.unwrap().seq;
    let again = rows.iter().find(|row| row.class == "retransmit").unwrap();
    assert_eq!(
        (again.tcp.unwrap().seq, &*again.reason, &*again.event),
        (seq, "fast-retransmit", "delivered")
    );
    assert!(rows.iter().is_sorted_by_key(|row| row.at_ns));
}

#[test]
fn a_record_survives_json() {
    let options = RecordOptions { trace: Some(TraceOptions::default()), ..RecordOptions::default() };
    let record = run(options, narrow(), 1);
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
}
