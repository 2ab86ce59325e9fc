//! What runs measure, against closed forms.

use ackline_lab::{RunOptions, Scenario, Summary, run, run_one};

const LINE: &str = r#"
duration = "10s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "line"
between = ["a", "b"]
rate = "10mbit"
delay = "10ms"
queue = { kind = "drop-tail", limit = "50p" }
[measure]
from = "2s"
"#;

fn line(rest: &str) -> Scenario {
    Scenario::parse(&format!("{LINE}{rest}"), "line.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_full_link_carries_what_headers_leave() {
    let result = run_one(&line("[[app]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n"), 0, 0).unwrap().result;
    let queue = &result.queues[0];
    assert!((queue.utilisation - 1.0).abs() < 1e-3, "{queue:?}");
    assert!((queue.throughput_bps / 10e6 - 1.0).abs() < 2e-3, "{queue:?}");
    // At most 50 packets wait, each of 1.2 ms, behind one in service.
    assert!(queue.delay_s.unwrap().max <= 0.0612);
    let flow = &result.flows[0];
    // 1,448 of 1,500 bytes are payload.
    assert!((flow.goodput_bps / (10e6 * 1_448.0 / 1_500.0) - 1.0).abs() < 0.01, "{flow:?}");
    assert_eq!((flow.wrong_reads, flow.share, flow.greedy), (0, 1.0, true));
    // Round trip: 20 ms, and the queue.
    let srtt = flow.srtt_s.unwrap();
    assert!(srtt.min > 0.020 && srtt.max < 0.085, "{srtt:?}");
    assert_eq!(result.jain, None, "one flow is not fair or unfair");
}

#[test]
fn each_kind_of_application_is_measured() {
    let apps = r#"
[[app]]
name = "writes"
kind = "writes"
from = "a"
to = "b"
size = 1000
interval = "10ms"
conn = { nagle = "off" }
[[app]]
name = "requests"
kind = "request"
from = "b"
to = "a"
request = 100
response = 5000
think = "90ms"
[[app]]
name = "downloads"
kind = "download"
from = "b"
to = "a"
size = { uniform = ["5k", "10k"] }
wait = { exponential = "200ms" }
[[app]]
name = "on-off"
kind = "on-off"
from = "a"
to = "b"
on = "5ms"
off = "1s"
conn = { send_buffer = "16k" }
[[app]]
name = "bsd"
kind = "bsd-writer"
from = "b"
to = "a"
size = "1M"
copy = "partial"
wake_up = "100us"
copy_kb = "50us"
reader = { bytes = "8k", interval = "20ms" }
"#;
    let result = run_one(&line(apps), 0, 0).unwrap().result;
    let flow = |name: &str| result.flows.iter().find(|flow| flow.name == name).unwrap();
    // A thousand bytes every 10 ms, and requests of 5,000 bytes every 90 ms and a round trip or
    // two.
    assert!((flow("writes").goodput_bps / 800e3 - 1.0).abs() < 0.02, "{:?}", flow("writes"));
    let requests = flow("requests");
    assert_eq!((requests.sender.as_str(), requests.receiver.as_str()), ("a", "b"));
    assert!((50..=90).contains(&requests.times_s.len()), "{}", requests.times_s.len());
    assert!(requests.times_s.iter().all(|time| (0.02..0.2).contains(time)));
    assert!(flow("downloads").times_s.len() > 10 && flow("on-off").received_bytes > 50_000);
    assert_eq!(flow("bsd").received_bytes, 1 << 20);
    assert!(result.flows.iter().all(|flow| flow.wrong_reads == 0));
    assert!(result.flows.iter().all(|flow| flow.data_packets > 0));
}

#[test]
fn changes_happen_when_they_should() {
    let text = r#"
[[app]]
kind = "bulk"
from = "a"
to = "b"
[[change]]
at = "2s"
link = "line"
rate = "2mbit"
[[change]]
at = "6s"
link = "line"
state = "stall"
for = "2s"
"#;
    let queue = |from: &str, until: &str| {
        let set = [format!("measure.from={from}"), format!("measure.until={until}")];
        let scenario = line(text).with_set(set).unwrap();
        run_one(&scenario, 0, 0).unwrap().result.queues[0].throughput_bps
    };
    assert!((queue("1s", "2s") / 10e6 - 1.0).abs() < 0.01);
    assert!((queue("3s", "5s") / 2e6 - 1.0).abs() < 0.01);
    assert_eq!(queue("6500ms", "7500ms"), 0.0);
}

#[test]
fn retransmissions_are_those_of_the_list_of_drops() {
    let text = "[[app]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsize = \"300k\"\n";
    let drops = "link.line.impairments=[{ kind = \"drop\", data = [20, 21, 90] }]";
    let scenario =
        line(text).with_set([drops, "measure.from=0s", "link.line.queue.limit=unlimited"]).unwrap();
    let result = run_one(&scenario, 0, 0).unwrap().result;
    assert_eq!((result.flows[0].retransmits, result.queues[0].impaired), (3, 3));
    assert_eq!(result.flows[0].received_bytes, 300 * 1_024);
    assert_eq!(result.flows[0].times_s.len(), 1);
}

/// A hole in the stream is filled, and what came after it is acknowledged, and read, at once: much
/// more than the link carries in one interval. The goodput over time counts it as it came.
#[test]
fn goodput_over_time_is_never_more_than_the_link_carries() {
    let text = "[[app]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n";
    let drops = "link.line.impairments=[{ kind = \"drop\", data = [2000, 2001, 4500] }]";
    let set = [drops, "measure.from=0s", "measure.interval=20ms", "measure.bins=20ms"];
    let outcome = run_one(&line(text).with_set(set).unwrap(), 0, 0).unwrap();
    let rates = outcome.goodput.rates(0, 1);
    assert_eq!((outcome.goodput.interval_s, rates.len()), (0.02, 500));
    // One packet more than what the link serialises in an interval, of which 1,448 bytes of 1,500
    // are payload.
    let most = (10e6 * 0.02 / 8.0 / 1_500.0 + 1.0) * 1_448.0 * 8.0 / 0.02;
    let highest = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    assert!(highest <= most && highest > 9.5e6, "{highest} of at most {most}");
    // The sum is the same as that of the application.
    let flow = &outcome.result.flows[0];
    assert!(flow.retransmits >= 3);
    let arrived: u64 = outcome.goodput.bytes[0].iter().sum();
    assert!((flow.received_bytes..=flow.received_bytes + 100_000).contains(&arrived), "{arrived}, {flow:?}");
    // The two other ways to count show more than twice the rate of the link.
    let read = flow.received_bins.iter().max().unwrap();
    assert!(*read as f64 * 8.0 / 0.02 > 20e6, "the application reads at once: {read}");
    let conn = &outcome.record.connections[0];
    let acked = conn.samples.windows(2).map(|pair| pair[1].bytes_acked - pair[0].bytes_acked).max().unwrap();
    assert!(acked as f64 * 8.0 / 0.02 > 20e6, "a cumulative ACK covers it at once: {acked}");
}

#[test]
fn fairness_counts_greedy_flows_only() {
    let text = r#"
[[app]]
name = "long"
kind = "bulk"
from = "a"
to = "b"
count = 3
[[app]]
name = "short"
kind = "bulk"
from = "a"
to = "b"
size = "20k"
start = "3s"
count = 4
stagger = "100ms"
"#;
    let result = run_one(&line(text), 0, 0).unwrap().result;
    let greedy: Vec<_> =
        result.flows.iter().filter(|flow| flow.greedy).map(|flow| flow.name.as_str()).collect();
    assert_eq!(greedy, ["long-1", "long-2", "long-3"]);
    let rates: Vec<f64> = result.flows[..3].iter().map(|flow| flow.goodput_bps).collect();
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    assert_eq!(result.jain, Some(sum * sum / (3.0 * squares)));
    assert!((result.flows.iter().map(|flow| flow.share).sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(result.flows[3..].iter().all(|flow| flow.times_s.len() == 1));
}

/// Numbers that follow from the scenario alone: 1,000 bytes written every 100 ms, on a link that is
/// far from full.
#[test]
fn summary_of_a_tiny_scenario() {
    let text = r#"
[[app]]
name = "beat"
kind = "writes"
from = "a"
to = "b"
size = 1000
interval = "100ms"
conn = { timestamps = false, ack = "immediate" }
"#;
    let report = run(&line(text), &RunOptions::default()).unwrap();
    // 80 writes in 8 s. A packet has 1,040 bytes and takes 832 us; its ACK 40 bytes and 32 us:
    // 20.864 ms, never a queue.
    let expected = "\
Window: 2 s to 10 s of each run; sampled every 10 ms. One run per point. Policies: cc cubic; ack
immediate; rto linux; sched flow-queue.

                   value    unit
 beat goodput       0.08  Mbit/s
 beat retransmits      0       %
 beat srtt         20.86      ms
 line utilisation  0.832       %
 line delay            0      ms
 line delay p95        0      ms
 line delay p99        0      ms
 line loss             0       %
";
    assert_eq!(report.summary.to_text(), expected);
    let csv = report.summary.to_csv();
    assert!(csv.starts_with("point,metric,unit,runs,mean,sd,min,p50,p95,max,ci95_low,ci95_high\n0,beat goodput,Mbit/s,1,0.08,,0.08,"), "{csv}");
    assert_eq!(Summary::of(&report.results), report.summary);
}

/// Of the end that decides: who sends data chooses its congestion control, and who receives it,
/// when to acknowledge.
#[test]
fn results_name_every_policy() {
    let text = r#"
[[app]]
name = "push"
kind = "bulk"
from = "a"
to = "b"
conn = { cc = "reno", ack = "delayed", rto = "eifel" }
accept = { cc = "cubic", ack = "immediate", rto = "linux" }
[[app]]
name = "pull"
kind = "download"
from = "a"
to = "b"
size = "10k"
start = "20s"
conn = { cc = "reno", ack = "delayed", rto = "eifel" }
accept = { cc = "cubic", ack = "immediate", rto = "linux" }
"#;
    let result = run_one(&line(text).with_set(["node.a.sched=drr"]).unwrap(), 0, 0).unwrap().result;
    let names = |place: usize| {
        let flow = &result.flows[place];
        [&flow.cc, &flow.ack, &flow.rto, &flow.sched].map(String::as_str)
    };
    assert_eq!(names(0), ["reno", "immediate", "eifel", "drr"]);
    assert_eq!(names(1), ["cubic", "delayed", "linux", "flow-queue"], "also of a flow that has not begun");
    let hosts = result.hosts.iter().map(|host| (host.host.as_str(), host.scheduler.as_str()));
    assert_eq!(hosts.collect::<Vec<_>>(), [("a", "drr"), ("b", "flow-queue")]);
    let csv = ackline_lab::tables::flows_csv(std::slice::from_ref(&result));
    assert!(
        csv.starts_with("point,repetition,seed,flow,app,sender,receiver,cc,ack,rto,sched,start_s,"),
        "{csv}"
    );
    assert!(csv.contains(",push,push,a,b,reno,immediate,eifel,drr,0,"), "{csv}");
    let caption = Summary::of(&[result]).caption();
    let policies = "Policies: cc reno (push), cubic (pull); ack immediate (push), delayed (pull); \
                    rto eifel (push), linux (pull); sched drr (push), flow-queue (pull).";
    assert!(caption.ends_with(policies), "{caption}");
}

/// As with their names: of the end that decides, for a flow in each direction.
#[test]
fn results_show_what_each_policy_shows_at_the_end_of_the_window() {
    let text = r#"
[[app]]
name = "push"
kind = "bulk"
from = "a"
to = "b"
conn = { cc = "cubic", ack = "delayed", rto = "eifel" }
accept = { cc = "reno", ack = "a3", rto = "linux" }
[[app]]
name = "pull"
kind = "download"
from = "a"
to = "b"
size = "10G"
conn = { cc = "reno", ack = "linux-like", rto = "linux" }
accept = { cc = "dctcp", ack = "delayed", rto = "frto" }
[[app]]
name = "late"
kind = "bulk"
from = "a"
to = "b"
start = "20s"
"#;
    let outcome = run_one(&line(text), 0, 0).unwrap();
    let flows = &outcome.result.flows;
    let has = |flow: usize, wanted: [&str; 3]| {
        let shown = flows[flow].metrics.as_ref().unwrap();
        let all = [&shown.cc, &shown.ack, &shown.rto];
        all.iter().zip(wanted).all(|(metrics, name)| metrics.contains_key(name))
    };
    assert!(has(0, ["w_max", "muds", "pipe_prev"]), "{:?}", flows[0].metrics);
    assert!(has(1, ["alpha", "interactive", "flight_prev"]), "{:?}", flows[1].metrics);
    assert_eq!(flows[2].metrics, None, "it has no connection yet");
    let shown = flows[0].metrics.as_ref().unwrap();
    // 1,500 bytes take 1.2 ms, and a round trip at least 20 ms.
    assert!(
        (shown.ack["ipat_us"] - 1_200.0).abs() < 1.0 && shown.ack["rtt_us"] > 20_000.0,
        "{:?}",
        shown.ack
    );

    // The recorder reads the sender's policies at the same instant.
    let sender = outcome.flow_of.iter().position(|flow| *flow == Some(0)).unwrap();
    let record = &outcome.record.connections[sender];
    let end = (outcome.result.window_s.1 * 1e9) as u64;
    let place = record.samples.iter().position(|sample| sample.at_ns == end).unwrap();
    for (owner, metrics) in [("cc", &shown.cc), ("rto", &shown.rto)] {
        let recorded = record.metrics.iter().filter(|metric| metric.owner == owner);
        let recorded = recorded.filter_map(|metric| Some((metric.name.clone(), metric.values[place]?)));
        assert_eq!(recorded.collect::<std::collections::BTreeMap<_, _>>(), *metrics);
    }
    let text = serde_json::to_string(&outcome.result).unwrap();
    assert_eq!(serde_json::from_str::<ackline_lab::results::RunResult>(&text).unwrap(), outcome.result);
}

/// Two applications, a sweep and repetitions: a single table would have more than 200 columns.
#[test]
fn the_text_of_a_summary_fits_in_a_hundred_columns() {
    let text = "[[app]]\nname = \"first\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\njitter = \"90ms\"\n\
                [[app]]\nname = \"second\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\njitter = \"90ms\"\n\
                [sweep]\nconn.cc = [\"reno\", \"cubic\"]\nlink.line.queue.limit = [\"20p\", \"40p\"]\n";
    let set = ["repeat=3", "duration=4s", "link.line.impairments=[{ kind = \"loss\", probability = 0.001 }]"];
    let summary = run(&line(text).with_set(set).unwrap(), &RunOptions::default()).unwrap().summary;
    let all = Summary { all_metrics: true, ..summary.clone() };
    for text in [summary.to_text(), all.to_text()] {
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("seeds ± the 95 % confidence interval of the mean"), "{text}");
    }
    // What does not fit beside the others follows below, with the values of each point again.
    let headings = |text: &str| text.lines().filter(|line| line.contains(" conn.cc ")).count();
    assert_eq!(headings(&summary.to_text()), 2);
    assert!(headings(&all.to_text()) > 2);
    assert!(all.to_text().contains("retransmits") && !summary.to_text().contains("retransmits"));
    let shown: Vec<&str> =
        summary.shown_metrics().into_iter().map(|place| summary.metrics[place].name.as_str()).collect();
    let main = ["first goodput", "second goodput", "line utilisation", "line delay", "line loss", "fairness"];
    assert_eq!(shown, main);
    // A mean and the farther end of its interval.
    let estimate = summary.points[0].estimates[0].unwrap();
    let (low, high) = estimate.ci.unwrap();
    let half = (estimate.mean - low).max(high - estimate.mean);
    let row = summary.to_text().lines().find(|line| line.starts_with(" reno ")).unwrap().to_owned();
    let given: f64 = row.split('±').nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!((given - half).abs() <= half * 0.05, "{half}: {row}");
}

#[test]
fn markdown_says_how_values_are_spread() {
    let text = "[[app]]\nname = \"bulk\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\njitter = \"20ms\"\n";
    let set = ["repeat=3", "link.line.impairments=[{ kind = \"loss\", probability = 0.01 }]"];
    let report = run(&line(text).with_set(set).unwrap(), &RunOptions::default()).unwrap();
    let markdown = report.summary.to_markdown();
    let heading = "| metric | runs | mean | sd | min | median | p95 | max | 95 % CI of the mean |";
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(markdown.lines().any(|line| squeezed(line) == heading), "{markdown}");
    assert!(
        markdown.contains(
            "mean over 3 runs with different seeds [95 % confidence interval of the mean, bootstrap]"
        )
    );
    let estimate = report.summary.points[0].estimates[0].unwrap();
    let (low, high) = estimate.ci.unwrap();
    assert!(estimate.min <= low && low < estimate.mean && estimate.mean < high && high <= estimate.max);
}

#[test]
fn dctcp_asks_for_marks_unless_told_otherwise() {
    let marked = |conn: &str| {
        let text = format!(
            r#"
duration = "3s"
conn = {{ {conn} }}
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "neck"
between = ["a", "b"]
rate = "10mbit"
delay = "5ms"
queue = {{ kind = "step", limit = "200k", threshold = "10k" }}
[[app]]
kind = "bulk"
from = "a"
to = "b"
"#
        );
        let scenario = Scenario::parse(&text, "dctcp.toml").unwrap();
        run_one(&scenario, 0, 0).unwrap().result.queues.iter().any(|queue| queue.marked > 0)
    };
    assert!(marked("cc = \"dctcp\""));
    assert!(!marked("cc = \"dctcp\", ecn = \"off\""));
    assert!(!marked("cc = \"reno\""));
}

#[test]
fn with_a_papers_prices_a_packet_is_what_it_carries_on_the_link_and_in_the_window() {
    let scenario = Scenario::parse(
        r#"
duration = "12s"
pricing = { ack = 28 }
[conn]
cc = "reno"
ack = "immediate"
mss = 1500
recv_buffer = "64k"
initial_recv_window = "full"
timestamps = false
initial_rto = "3s"
[[node]]
name = "a"
mtu = 1540
[[node]]
name = "b"
mtu = 1540
[[link]]
name = "line"
between = ["a", "b"]
rate = "1gbit"
delay = "500ms"
back = { rate = "1gbit", delay = "500ms" }
[[app]]
kind = "bulk"
from = "a"
to = "b"
[measure]
from = "8s"
until = "11s"
bins = "1s"
queues = ["line", "line.back"]
[sweep]
conn.mss = [256, 512, 1500]
"#,
        "prices.toml",
    )
    .unwrap();
    for (point, mss) in [256, 512, 1500].into_iter().enumerate() {
        let result = run_one(&scenario, point, 0).unwrap().result;
        // One window of whole packets for each round trip of a second and a burst of at most 0.6
        // ms.
        let window = 65_536 / mss;
        let [there, back] = [result.queues[0].classes, result.queues[1].classes];
        assert_eq!((there.data.packets, there.data.bytes), (3 * window, 3 * window * mss), "mss {mss}");
        assert_eq!((back.ack.packets, back.ack.bytes), (3 * window, 3 * window * 28), "mss {mss}");
        assert_eq!(there.ack.packets + there.control.packets + back.data.packets, 0);
        let flow = &result.flows[0];
        assert_eq!((flow.received_bins.len(), result.bin_s), (12, Some(1.0)));
        assert_eq!(flow.received_bins[8..11], [window * mss; 3], "mss {mss}");
        assert_eq!(flow.received_bins.iter().sum::<u64>(), flow.received_bytes);
    }
}

/// Answers of nine segments make room for eighteen; the summary says so if the scenario asks.
#[test]
fn the_window_with_which_a_flow_ends_is_a_column_on_demand() {
    for asked in [true, false] {
        let rest = format!(
            "cwnd = {asked}\n[[app]]\nkind = \"request\"\nfrom = \"b\"\nto = \"a\"\nrequest = 100\nresponse = {}\n\
             think = \"50ms\"\n",
            9 * 1_448
        );
        let result = run_one(&line(&rest), 0, 0).unwrap().result;
        let end = asked.then_some(18 * 1_448);
        assert_eq!(result.flows[0].cwnd_end_bytes, end);
        let column = result.readings().into_iter().find(|reading| reading.name.ends_with(" cwnd"));
        assert_eq!(column.map(|reading| (reading.value, reading.unit)), end.map(|bytes| (bytes as f64, "B")));
    }
}

/// Downloads over a line that stalls for two seconds in the first of them: everything that is sent
/// again arrives, and was there.
#[test]
fn each_download_is_measured_by_itself() {
    let rest = r#"transfers = true
interval = "1ms"
[conn]
cc = "reno"
nagle = "off"
# A probe would repeat the last packet, which is short, and so would the timeout.
tlp = false
[[app]]
kind = "download"
from = "b"
to = "a"
size = 1000000
files = 3
[[change]]
at = "500ms"
link = "line"
state = "stall"
for = "2s"
"#;
    let text = LINE.replace("from = \"2s\"", "from = \"0s\"") + rest;
    // What comes late must not overflow the buffer.
    let text = text.replace("50p", "1000p");
    let scenario = Scenario::parse(&text, "line.toml").unwrap();
    let result = run_one(&scenario, 0, 0).unwrap().result;
    let flow = &result.flows[0];
    assert_eq!(result.queues[0].overflows, 0);
    assert_eq!((flow.times_s.len(), flow.transfers.len()), (3, 3));
    // Most of the first transfer's two seconds it stands still, and a probing sender has no window
    // then.
    let probing = run_one(&scenario.with_set(["conn.rto=dclor"]).unwrap(), 0, 0).unwrap().result;
    let probing = probing.flows[0].transfers[0];
    assert!(probing.cwnd_segments.unwrap() < 0.5 * probing.cwnd_before_segments.unwrap(), "{probing:?}");
    let [first, second, third] = flow.transfers[..] else { unreachable!() };
    for transfer in [first, second, third] {
        assert_eq!((transfer.bytes, transfer.mss), (1_000_000, 1_448));
        assert_eq!(transfer.data_packets, 1_000_000_u64.div_ceil(1_448) + transfer.retransmits);
    }
    assert!(first.timeouts >= 1 && first.retransmits > 0);
    let last = 1_000_000 % 1_448;
    let (whole, cut) = (first.retransmits * 1_448, (first.retransmits - 1) * 1_448 + last);
    assert!([whole, cut].contains(&first.redundant_bytes), "{first:?}");
    let efficiency = first.spectral_efficiency().unwrap();
    assert!(
        (efficiency * first.cwnd_segments.unwrap() * 1_448.0 / first.redundant_bytes as f64 - 1.0).abs()
            < 1e-9
    );
    for transfer in [first, second, third] {
        assert_eq!(transfer.cwnd_before_segments, transfer.cwnd_segments, "it never probes");
        assert_eq!(transfer.spectral_efficiency_before(), transfer.spectral_efficiency());
    }
    for quiet in [second, third] {
        assert_eq!((quiet.retransmits, quiet.redundant_bytes, quiet.timeouts), (0, 0, 0));
        // Ten segments at first, and one more for each that is acknowledged.
        let mean = quiet.cwnd_segments.unwrap();
        assert!(mean > 10.0 && mean < 10.0 + 691.0, "{quiet:?}");
        assert_eq!(quiet.spectral_efficiency(), Some(0.0));
    }
}

const PATH: &str = r#"
duration = "60s"
[[node]]
name = "server"
[[node]]
name = "client"
[[node]]
name = "path"
kind = "stis"
stalls = []
route = { change = 0.0 }
[[link]]
name = "down"
between = ["server", "path"]
rate = "10mbit"
[[link]]
between = ["path", "client"]
[[app]]
kind = "download"
from = "client"
to = "server"
size = "3000"
files = 1
conn = { mss = 1460, timestamps = false, nagle = "off" }
"#;

/// SYN, SYN-ACK and ACK, then three segments one behind the other.
#[test]
fn a_download_crosses_the_impaired_path_as_its_rules_say() {
    let result = run_one(&Scenario::parse(PATH, "path.toml").unwrap(), 0, 0).unwrap().result;
    let at_50k = |bytes: f64| 8.0 * bytes / 50e3;
    // The options: segment size, SACK, window scale, in 12 bytes of each SYN. On 10 Mbit/s only
    // what the server sends waits.
    let handshake = 2.0 * (at_50k(52.0) + 0.2) + 8.0 * 52.0 / 10e6 + at_50k(40.0) + 0.2;
    let data = 8.0 * 1_500.0 / 10e6 + at_50k(2.0 * 1_500.0 + 120.0) + 0.2;
    let time = result.flows[0].times_s[0];
    assert!((time - handshake - data).abs() < 1e-3, "{time} {handshake} {data}");
}

#[test]
fn an_impossible_path_is_refused() {
    for (from, to, expected) in [
        ("stalls = []", "stals = []", "node.path.stals: unknown key"),
        (
            "stalls = []",
            "stalls = [{ probability = 0.6, lasts = \"1s\" }, { probability = 0.5, lasts = \"2s\" }]",
            "node.path.stalls.1: the probabilities of all stalls are more than 1 together",
        ),
        ("stalls = []", "flow = \"port\"", "node.path.flow: \"port\" is not possible"),
        ("stalls = []", "mtu = 1500", "node.path.mtu: unknown key for stis"),
        (
            "name = \"client\"",
            "name = \"client\"\nbuffer = \"1k\"",
            "node.client.buffer: unknown key for host",
        ),
        ("route = { change = 0.0 }", "route = { chance = 0.0 }", "node.path.route.chance: unknown key"),
    ] {
        let error = Scenario::parse(&PATH.replacen(from, to, 1), "path.toml").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_fed_links_host_says_how_long_its_packets_waited() {
    let text = LINE
        .replace("name = \"a\"\n", "name = \"a\"\negress = \"fed\"\nsched = \"fifo:acks=kept\"\n")
        .replace("from = \"2s\"", "from = \"2s\"\nqueues = [\"line\"]");
    let conn = "conn = { cc = \"reno\", recv_buffer = \"64k\", initial_recv_window = \"full\" }\n";
    let app = format!("[[app]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\n{conn}");
    let scenario = Scenario::parse(&(text + &app), "fed.toml").unwrap();
    let result = run_one(&scenario, 0, 0).unwrap().result;
    let [host, other] = result.hosts.as_slice() else { panic!("two hosts: {:?}", result.hosts) };
    assert!(other.waits.is_empty(), "only a has to queue: {other:?}");
    assert_eq!((host.host.as_str(), host.scheduler.as_str()), ("a", "fifo"));
    // 64 KB less the 20 ms of propagation wait at 10 Mbit/s.
    let data = host.waits["data"];
    assert!(data.queued > 7_000 && (0.028..0.036).contains(&data.max), "{data:?}");
    assert!(data.p50 <= data.p90 && data.p90 <= data.p99 && data.p99 <= data.max, "{data:?}");
    assert!(host.metrics.contains_key("queued_packets"), "{:?}", host.metrics);
    // The link itself has no queue.
    assert_eq!(result.queues[0].delay_s.unwrap().max, 0.0);
}

/// Small segments over a path of 100 ms that stands still for five minutes and loses nothing: the
/// samples of minutes that come then do not set the pace of what follows.
#[test]
fn a_paced_flow_recovers_from_a_stall_of_minutes() {
    let text = r#"
duration = "325s"
[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "line"
between = ["a", "b"]
rate = "10mbit"
delay = "50ms"
queue = { kind = "drop-tail", limit = "unlimited" }
[[app]]
kind = "bulk"
from = "a"
to = "b"
[[change]]
at = "1s"
link = "line"
state = "stall"
for = "300s"
[measure]
from = "305s"
[conn]
mss = 100
cwnd_cap = "10k"
"#;
    for (cc, timestamps) in [("cubic:pacing=on", true), ("acwap", false), ("acwap:pacing=stack", true)] {
        let set = [format!("conn.cc={cc:?}"), format!("conn.timestamps={timestamps}")];
        let scenario = Scenario::parse(text, "stall.toml").unwrap().with_set(set).unwrap();
        let flow = &run_one(&scenario, 0, 0).unwrap().result.flows[0];
        // 10,240 bytes per round trip.
        assert!(flow.goodput_bps > 0.95 * 8.0 * 10_240.0 / 0.1, "{cc}: {} bit/s", flow.goodput_bps);
    }
}
