//! A test in lines, with iperf3's columns.
//!
//! ```text
//! [ ID] Interval           Transfer     Bitrate         Retr  Cwnd                RTT
//! [  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   1.12 MBytes      80 us
//! [  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec                  (omitted)
//! [SUM]   0.00-2.00   sec  5.00 MBytes  21.0 Mbits/sec    0             sender
//! ```
//!
//! The RTT is an addition: it stands behind iperf3's last column, so that the others are where they
//! are expected.

use super::json::bits_per_second;
use super::record::{
    Connected, Contact, Cpu, Direction, End, Interval, Length, Record, Setup, StreamTotal, Sum, Total,
};
use crate::args::units::{self, RateFormat};
use std::time::Duration;

/// Between the intervals of several streams, and before the summary.
const RULE: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";
/// Around the server's invitation.
const BAR: &str = "-----------------------------------------------------------\n";

/// How lines are written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Text {
    pub(super) rate: RateFormat,
    pub(super) verbose: bool,
}

impl Text {
    /// What runs; with `-V` only.
    pub(super) fn opening(&self, record: &Record) -> String {
        if !self.verbose {
            return String::new();
        }
        format!("{}\n{}\n", record.software.version, record.software.system)
    }

    /// A server's invitation.
    pub(super) fn listening(port: u16, test: u64) -> String {
        format!("{BAR}Server listening on {port} (test #{test})\n{BAR}")
    }

    /// The other end, and with `-V` what was agreed upon.
    pub(super) fn setup(&self, setup: &Setup) -> String {
        let Setup { contact, time, cookie, control_mss, buffers: _, parameters } = setup;
        let mut text = String::new();
        if self.verbose {
            if matches!(contact, Contact::ConnectingTo { .. }) {
                text += &format!("Control connection MSS {control_mss}\n");
            }
            text += &format!("Time: {}\n", httpdate::fmt_http_date(*time));
        }
        match contact {
            Contact::ConnectingTo { host, port } => {
                text += &format!("Connecting to host {host}, port {port}\n");
                if parameters.direction == Direction::Reverse {
                    text += &format!("Reverse mode, remote host {host} is sending\n");
                }
            }
            Contact::AcceptedFrom(peer) => {
                text += &format!("Accepted connection from {}, port {}\n", peer.ip(), peer.port());
            }
        }
        if self.verbose {
            text += &format!("      Cookie: {cookie}\n");
            text += &match parameters.mss {
                Some(mss) => format!("      TCP MSS: {mss}\n"),
                None => format!("      TCP MSS: {control_mss} (default)\n"),
            };
            if parameters.target_bitrate > 0 {
                text += &format!("      Target Bitrate: {}\n", parameters.target_bitrate);
            }
        }
        text
    }

    pub(super) fn connected(stream: &Connected) -> String {
        let Connected { id, sends: _, local, remote } = stream;
        format!(
            "[{id:3}] local {} port {} connected to {} port {}\n",
            local.ip(),
            local.port(),
            remote.ip(),
            remote.port()
        )
    }

    /// What begins; with `-V` only.
    pub(super) fn started(&self, setup: &Setup) -> String {
        if !self.verbose {
            return String::new();
        }
        let parameters = &setup.parameters;
        let length = match parameters.length {
            Length::Seconds(seconds) => format!("{seconds} second test"),
            Length::Bytes(bytes) => format!("{bytes} bytes to send"),
            Length::Blocks(blocks) => format!("{blocks} blocks to send"),
        };
        format!(
            "Starting Test: protocol: TCP, {} streams, {} byte blocks, omitting {} seconds, {length}, tos {}\n",
            parameters.streams, parameters.block_size, parameters.omit, parameters.tos
        )
    }

    /// The newest interval of a record.
    pub(super) fn interval(&self, record: &Record, interval: &Interval, first: bool) -> String {
        let several = several_streams(record);
        let mut text = String::new();
        if first {
            text += &heading(record, record.sides().contains(&true), true);
        } else if several {
            text += RULE;
        }
        let mark = if interval.omitted { "(omitted)" } else { "" };
        for sends in record.sides() {
            let role = role(record, sends);
            for stream in interval.streams.iter().filter(|stream| stream.sender.is_some() == sends) {
                let (time, bytes) = ((stream.start, stream.end), stream.bytes);
                let line = self.amount(&format!("[{:3}]{role}", stream.id), time, bytes);
                text += &match stream.sender {
                    None => format!("{line}                  {mark}\n"),
                    Some(state) => format!(
                        "{line}  {:3}   {}  {:>9}       {mark}\n",
                        state.retransmits,
                        units::transfer(state.snd_cwnd),
                        round_trip(state.rtt)
                    ),
                };
            }
            if several {
                text += &self.sum(record, sends, interval.sum(sends), mark);
            }
        }
        text
    }

    /// What came out, as far as it is known.
    pub(super) fn end(&self, record: &Record, end: &End) -> String {
        let several = several_streams(record);
        let mut text = RULE.to_owned();
        if self.verbose {
            text += "Test Complete. Summary Results:\n";
        }
        let knows_senders = end.streams.iter().any(|stream| stream.sent.is_some());
        text += &heading(record, knows_senders, false);
        for sends in record.sides() {
            let side = || end.streams.iter().filter(|stream| record.sends(stream.id) == sends);
            for stream in side() {
                text += &self.total(record, stream);
            }
            if several {
                let sent = Sum::of(side().filter_map(|stream| stream.sent));
                let received = Sum::of(side().filter_map(|stream| stream.received));
                let sums = [(sent, "sender"), (received, "receiver")];
                for (sum, whose) in sums.into_iter().filter_map(|(sum, whose)| Some((sum?, whose))) {
                    text += &self.sum(record, sends, sum, whose);
                }
            }
        }
        if self.verbose {
            text += &cpu(record, end.local_cpu, end.remote_cpu);
            for (side, name) in [("snd", &end.sender_congestion), ("rcv", &end.receiver_congestion)] {
                if let Some(name) = name {
                    text += &format!("{side}_tcp_congestion {name}\n");
                }
            }
        }
        text
    }

    /// Both ends' view of a stream.
    fn total(&self, record: &Record, stream: &StreamTotal) -> String {
        let sends = record.sends(stream.id);
        let label = format!("[{:3}]{}", stream.id, role(record, sends));
        let mut text = String::new();
        for (total, whose) in [(stream.sent, "sender"), (stream.received, "receiver")] {
            match total {
                Some(total) => text += &self.one_end(&label, total, whose),
                None if self.verbose => text += &format!("{label} ({whose} statistics not available)\n"),
                None => {}
            }
        }
        if self.verbose && sends {
            let extremes = record.extremes(stream.id);
            text += &format!(
                "{label} largest Cwnd {}, RTT min/mean/max {}/{}/{} us\n",
                units::transfer(extremes.max_snd_cwnd).trim_start(),
                extremes.min_rtt.as_micros(),
                extremes.mean_rtt().as_micros(),
                extremes.max_rtt.as_micros()
            );
        }
        text
    }

    fn one_end(&self, label: &str, total: Total, whose: &str) -> String {
        let line = self.amount(label, (Duration::ZERO, total.time), total.bytes);
        with_retransmits(&line, total.retransmits, whose)
    }

    fn sum(&self, record: &Record, sends: bool, sum: Sum, mark: &str) -> String {
        let line = self.amount(&format!("[SUM]{}", role(record, sends)), (sum.start, sum.end), sum.bytes);
        with_retransmits(&line, sum.retransmits, mark)
    }

    /// The columns that every line has.
    fn amount(&self, label: &str, (start, end): (Duration, Duration), bytes: u64) -> String {
        format!(
            "{label} {:6.2}-{:<6.2} sec  {}  {}/sec",
            start.as_secs_f64(),
            end.as_secs_f64(),
            units::transfer(bytes),
            units::rate(bits_per_second(bytes, end.saturating_sub(start)), self.rate)
        )
    }
}

/// The end of a line that counts retransmissions, or of one that does not.
fn with_retransmits(line: &str, retransmits: Option<u64>, mark: &str) -> String {
    match retransmits {
        Some(count) => format!("{line}  {count:3}             {mark}\n"),
        None => format!("{line}                  {mark}\n"),
    }
}

fn heading(record: &Record, retransmits: bool, window: bool) -> String {
    let role = if record.is_bidirectional() { "[Role]" } else { "" };
    let sender = match (retransmits, window) {
        (false, _) => "",
        (true, false) => "         Retr",
        (true, true) => "         Retr  Cwnd                RTT",
    };
    format!("[ ID]{role} Interval           Transfer     Bitrate{sender}\n")
}

/// Direction of a stream, if both are tested.
fn role(record: &Record, sends: bool) -> &'static str {
    match (record.is_bidirectional(), record.is_client(), sends) {
        (false, ..) => "",
        (true, true, true) => "[TX-C]",
        (true, true, false) => "[RX-C]",
        (true, false, true) => "[TX-S]",
        (true, false, false) => "[RX-S]",
    }
}

fn several_streams(record: &Record) -> bool {
    record.setup.as_ref().is_some_and(|setup| setup.parameters.streams > 1)
}

fn cpu(record: &Record, local: Cpu, remote: Option<Cpu>) -> String {
    let (own, others) = match record.sides()[..] {
        [true] => ("local/sender", "remote/receiver"),
        [false] => ("local/receiver", "remote/sender"),
        _ => ("local", "remote"),
    };
    let shown = |cpu: Cpu| format!("{:.1}% ({:.1}%u/{:.1}%s)", cpu.total, cpu.user, cpu.system);
    let mut text = format!("CPU Utilization: {own} {}", shown(local));
    if let Some(remote) = remote {
        text += &format!(", {others} {}", shown(remote));
    }
    text.push('\n');
    text
}

/// At most nine characters: `80 us`, `1.35 ms`, `2.10 s`; a dash if nothing was measured.
fn round_trip(time: Duration) -> String {
    match time {
        Duration::ZERO => "-".to_owned(),
        time if time < Duration::from_millis(1) => format!("{} us", time.as_micros()),
        time if time < Duration::from_secs(1) => format!("{:.2} ms", time.as_secs_f64() * 1e3),
        time => format!("{:.2} s", time.as_secs_f64()),
    }
}
