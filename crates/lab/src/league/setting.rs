//! Networks of the matrix, as text: one link, a dumbbell, three bottlenecks in a row.

use std::fmt::Write as _;

/// Bits of a full packet.
pub(super) const PACKET_BITS: f64 = 12_000.0;
/// Payload of a full packet in its 1,500 bytes.
pub(super) const PAYLOAD: f64 = 1_448.0 / 1_500.0;

/// A bottleneck.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Bits per second.
    pub(super) rate: f64,
    /// Base round trip, ms.
    pub(super) rtt: f64,
    /// Buffer in BDP.
    pub(super) buffer: f64,
    /// What is written in place of the drop-tail queue.
    pub(super) queue: Option<String>,
    /// What happens on the way there, as TOML tables.
    pub(super) impairments: String,
    /// The same on the way back, beside the jitter of ACKs.
    pub(super) back_impairments: String,
    /// What is written in place of the way back.
    pub(super) back: Option<String>,
    /// What is written in place of rate and delay.
    pub(super) line: Option<String>,
}

impl Path {
    pub(super) fn new(rate_mbit: f64, rtt: f64, buffer: f64) -> Self {
        Self {
            rate: rate_mbit * 1e6,
            rtt,
            buffer,
            queue: None,
            impairments: String::new(),
            back_impairments: String::new(),
            back: None,
            line: None,
        }
    }

    /// 20 Mbit/s, 40 ms: 67 packets.
    pub(super) fn p0(buffer: f64) -> Self {
        Self::new(20.0, 40.0, buffer)
    }

    pub(super) fn queue(mut self, text: &str) -> Self {
        self.queue = Some(text.to_owned());
        self
    }

    pub(super) fn impaired(mut self, text: &str) -> Self {
        text.clone_into(&mut self.impairments);
        self
    }

    pub(super) fn back_impaired(mut self, text: &str) -> Self {
        text.clone_into(&mut self.back_impairments);
        self
    }

    /// Packets that fill the path.
    pub(super) fn bdp(&self) -> f64 {
        self.rate * self.rtt / 1e3 / PACKET_BITS
    }

    /// Packets of the buffer.
    pub(super) fn limit(&self) -> u64 {
        (libm::round(self.bdp() * self.buffer) as u64).max(2)
    }

    /// Payload in bits per second.
    pub(super) fn capacity(&self) -> f64 {
        self.rate * PAYLOAD
    }

    /// A link called `name` from one node to another; `delay` in ms, one way.
    fn link(&self, name: &str, from: &str, to: &str, delay: f64) -> String {
        let queue = self.queue.clone();
        let queue =
            queue.unwrap_or_else(|| format!("{{ kind = \"drop-tail\", limit = \"{}p\" }}", self.limit()));
        let line = self.line.clone();
        let line =
            line.unwrap_or_else(|| format!("rate = \"{}\"\ndelay = \"{}\"", rate(self.rate), ms(delay)));
        let impairments = match self.impairments.as_str() {
            "" => String::new(),
            text => format!("impairments = [{text}]\n"),
        };
        let back = self.back.clone();
        let back = back.unwrap_or_else(|| {
            let more = match self.back_impairments.as_str() {
                "" => String::new(),
                text => format!(", {text}"),
            };
            format!(
                "{{ rate = \"1gbit\", queue = {{ kind = \"drop-tail\", limit = \"10000p\" }}, \
                 impairments = [{{ kind = \"jitter\", limit = \"200us\" }}{more}] }}"
            )
        });
        format!(
            "[[link]]\nname = \"{name}\"\nbetween = [\"{from}\", \"{to}\"]\n{line}\nqueue = {queue}\n{impairments}back = {back}\n\n"
        )
    }
}

/// A group of hosts of a dumbbell that send to `receiver`.
pub(super) struct Senders {
    pub(super) name: &'static str,
    pub(super) count: u32,
    /// Base round trip, ms.
    pub(super) rtt: f64,
}

pub(super) fn node(name: &str, count: u32) -> String {
    match count {
        1 => format!("[[node]]\nname = \"{name}\"\n\n"),
        _ => format!("[[node]]\nname = \"{name}\"\ncount = {count}\n\n"),
    }
}

/// T1: one link between `sender` and `receiver`.
pub(super) fn single(path: &Path) -> String {
    node("sender", 1) + &node("receiver", 1) + &path.link("bottleneck", "sender", "receiver", path.rtt / 2.0)
}

/// T2: a dumbbell whose access links make the rest of each round trip.
pub(super) fn dumbbell(path: &Path, access: &str, senders: &[Senders]) -> String {
    const SHARED: f64 = 1.0;
    let mut text = String::new();
    for group in senders {
        text += &node(group.name, group.count);
    }
    text += "[[node]]\nname = \"router\"\nkind = \"router\"\n\n";
    text += &node("receiver", 1);
    for group in senders {
        let delay = ms(group.rtt / 2.0 - SHARED);
        let _ = write!(
            text,
            "[[link]]\nbetween = [\"{}\", \"router\"]\nrate = \"{access}\"\ndelay = \"{delay}\"\n\
             queue = {{ kind = \"drop-tail\", limit = \"10000p\" }}\n\n",
            group.name
        );
    }
    text + &path.link("bottleneck", "router", "receiver", SHARED)
}

/// T3: three bottlenecks in a row. `long` crosses all; `cross-1` to `cross-3` one each.
pub(super) fn parking_lot(path: &Path) -> String {
    let mut text = node("long", 1) + &node("end", 1);
    for hop in 1..=4 {
        let _ = write!(text, "[[node]]\nname = \"router-{hop}\"\nkind = \"router\"\n\n");
    }
    let edge = |a: &str, b: &str, delay: f64| {
        format!(
            "[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"1gbit\"\ndelay = \"{}\"\n\
             queue = {{ kind = \"drop-tail\", limit = \"10000p\" }}\n\n",
            ms(delay)
        )
    };
    for hop in 1..=3 {
        text += &node(&format!("cross-{hop}"), 1);
        text += &node(&format!("sink-{hop}"), 1);
    }
    // Round trips of all flows are those of the path.
    const HOP: f64 = 2.0;
    let rest = path.rtt / 2.0;
    text += &edge("long", "router-1", rest - 3.0 * HOP - 1.0);
    text += &edge("router-4", "end", 1.0);
    for hop in 1..=3 {
        text += &path.link(
            &format!("bottleneck-{hop}"),
            &format!("router-{hop}"),
            &format!("router-{}", hop + 1),
            HOP,
        );
        text += &edge(&format!("cross-{hop}"), &format!("router-{hop}"), rest - HOP - 1.0);
        text += &edge(&format!("router-{}", hop + 1), &format!("sink-{hop}"), 1.0);
    }
    text
}

/// The head of a scenario. `buffers`: of sockets, in bytes.
pub(super) fn head(title: &str, seconds: f64, buffers: u64) -> String {
    format!(
        "title = \"{title}\"\nduration = \"{}\"\n\n[conn]\nsend_buffer = {buffers}\nrecv_buffer = {buffers}\n\n",
        s(seconds)
    )
}

/// A bulk flow.
pub(super) fn bulk(name: &str, from: &str, to: &str, start: f64, conn: &str) -> String {
    let start = if start > 0.0 { format!("start = \"{}\"\n", s(start)) } else { String::new() };
    format!(
        "[[app]]\nname = \"{name}\"\nkind = \"bulk\"\nfrom = \"{from}\"\nto = \"{to}\"\n{start}jitter = \"1s\"\nconn = {{ {conn} }}\n\n"
    )
}

/// The measurement, from `warm_up` seconds on.
pub(super) fn measure(warm_up: f64, queues: &str) -> String {
    format!("[measure]\nfrom = \"{}\"\nbins = \"200ms\"\nqueues = {queues}\n", s(warm_up))
}

/// A rate as scenarios write it.
pub(super) fn rate(bits: f64) -> String {
    format!("{}kbit", libm::round(bits / 1e3))
}

/// Milliseconds as scenarios write them.
pub(super) fn ms(time: f64) -> String {
    format!("{}us", libm::round(time * 1e3))
}

/// Seconds as scenarios write them.
pub(super) fn s(time: f64) -> String {
    format!("{}ms", libm::round(time * 1e3))
}
