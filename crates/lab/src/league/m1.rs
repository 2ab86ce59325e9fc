//! The cells of M1 and of its quick version.
//!
//! Every number of a cell is fixed here, so changing one changes the matrix's hash. Packets are of
//! 1,500 bytes; buffers count in BDP of the shortest round trip. ACKs come back with a jitter of up
//! to 0.2 ms that keeps their order: without noise a drop-tail queue locks phases.

use super::cell::{Cell, ECN, Facts, POLICY, Takes};
use super::setting::{
    PACKET_BITS, PAYLOAD, Path, Senders, bulk, dumbbell, head, measure, ms, node, parking_lot, rate, s,
    single,
};

/// Socket buffers of cells with few flows, bytes.
const LARGE: u64 = 32 << 20;
/// The bottleneck of T1 and T2.
const ONE: &str = "\"bottleneck\"";
const FAST: &str = "1gbit";

/// Run and warm-up, s.
#[derive(Clone, Copy)]
pub(super) struct Times(pub(super) f64, pub(super) f64);

/// Socket buffers of cells with many flows.
fn small(path: &Path) -> u64 {
    let bytes = 2.0 * (path.bdp() + path.limit() as f64) * 1_500.0;
    (bytes as u64).max(256 << 10)
}

fn policy() -> String {
    format!("cc = \"{POLICY}\"")
}

fn other(cc: &str) -> String {
    format!("cc = \"{cc}\"")
}

fn cell(id: String, family: &'static str, text: String, seeds: u32, packets: f64, facts: Facts) -> Cell {
    Cell { id, family, text, seeds, packets, takes: Takes::All, facts }
}

fn facts(path: &Path) -> Facts {
    Facts { capacity: path.capacity(), rtt: path.rtt / 1e3, buffer: path.buffer, ..Facts::default() }
}

/// Millions of packets that a full link carries.
fn full(path: &Path, seconds: f64) -> f64 {
    path.rate * seconds / PACKET_BITS / 1e6
}

/// A number as a part of a name.
fn n(value: f64) -> String {
    value.to_string().trim_start_matches('0').to_owned()
}

/// One flow over one link.
fn one(id: String, family: &'static str, path: &Path, times: Times, seeds: u32) -> Cell {
    let text = head(&id, times.0, LARGE)
        + &single(path)
        + &bulk("a", "sender", "receiver", 0.0, &policy())
        + &measure(times.1, ONE);
    cell(id, family, text, seeds, full(path, times.0), facts(path))
}

/// S: one flow.
pub(super) fn alone(rate: f64, rtt: f64, buffer: f64, times: Times, seeds: u32) -> Cell {
    let id = format!("S-{rate}-{rtt}-{}", n(buffer));
    one(id, "S", &Path::new(rate, rtt, buffer), times, seeds)
}

/// L: random loss.
pub(super) fn lossy(id: &str, rate: f64, model: &str, share: f64, times: Times, seeds: u32) -> Cell {
    let path = Path::new(rate, 100.0, 1.0).impaired(model);
    let mut cell = one(id.to_owned(), "L", &path, times, seeds);
    cell.facts.capacity *= 1.0 - share;
    // Few controls fill a link that loses this much.
    cell.packets *= if share > 2e-3 { 0.3 } else { 0.7 };
    cell
}

pub(super) fn loss(probability: f64) -> String {
    format!("{{ kind = \"loss\", probability = {probability} }}")
}

/// Bursts of eight packets, 1 % in the mean.
const BURST: &str = "{ kind = \"gilbert-elliott\", to_bad = 0.00126, to_good = 0.125, bad = 1 }";

/// E: n flows of the policy.
pub(super) fn equals(count: u32, buffer: f64, times: Times, seeds: u32) -> Cell {
    let path = Path::new(50.0, 40.0, buffer);
    let id = format!("E-{count}-{}", n(buffer));
    let buffers = if count >= 8 { small(&path) } else { LARGE };
    let senders = [Senders { name: "sender", count, rtt: path.rtt }];
    let text = head(&id, times.0, buffers)
        + &dumbbell(&path, FAST, &senders)
        + &bulk("a", "sender", "receiver", 0.0, &policy())
        + &measure(times.1, ONE);
    cell(id, "E", text, seeds, full(&path, times.0), facts(&path))
}

/// C: a second flow of the policy begins at 30 s.
pub(super) fn joins(buffer: f64, times: Times, seeds: u32) -> Cell {
    let path = Path::p0(buffer);
    let id = format!("C-{}", n(buffer));
    let senders = ["first", "second"].map(|name| Senders { name, count: 1, rtt: path.rtt });
    let text = head(&id, times.0, LARGE)
        + &dumbbell(&path, FAST, &senders)
        + &bulk("a", "first", "receiver", 0.0, &policy())
        + &bulk("second", "second", "receiver", 30.0, &policy())
        + &measure(times.1, ONE);
    cell(id, "C", text, seeds, full(&path, times.0), facts(&path))
}

/// R: two flows of the policy with different round trips.
fn far(rate: f64, rtt: f64, times: Times, seeds: u32) -> Cell {
    let path = Path::new(rate, 20.0, 1.0);
    let id = format!("R-{rtt}");
    let senders = [Senders { name: "near", count: 1, rtt: 20.0 }, Senders { name: "far", count: 1, rtt }];
    let text = head(&id, times.0, LARGE)
        + &dumbbell(&path, FAST, &senders)
        + &bulk("a", "near", "receiver", 0.0, &policy())
        + &bulk("far", "far", "receiver", 0.0, &policy())
        + &measure(times.1, ONE);
    cell(id, "R", text, seeds, full(&path, times.0), Facts { ratio: rtt / 20.0, ..facts(&path) })
}

/// H: one kind of flows beside another.
struct Beside {
    id: String,
    path: Path,
    victim: &'static str,
    victims: u32,
    newcomers: u32,
    access: &'static str,
    times: Times,
    seeds: u32,
}

impl Beside {
    fn new(id: String, path: Path, victim: &'static str, times: Times, seeds: u32) -> Self {
        Self { id, path, victim, victims: 1, newcomers: 1, access: FAST, times, seeds }
    }

    /// The victims beside the policy, and the victims alone.
    fn cells(&self) -> [Cell; 2] {
        let Self { path, times, seeds, .. } = self;
        let text = |id: &str, newcomers: u32| {
            let many = self.victims + self.newcomers >= 8;
            let mut senders = vec![Senders { name: "victim", count: self.victims, rtt: path.rtt }];
            let mut apps = bulk("v", "victim", "receiver", 0.0, &other(self.victim));
            if newcomers > 0 {
                senders.push(Senders { name: "sender", count: newcomers, rtt: path.rtt });
                apps += &bulk("a", "sender", "receiver", 0.0, &policy());
            }
            head(id, times.0, if many { small(path) } else { LARGE })
                + &dumbbell(path, self.access, &senders)
                + &apps
                + &measure(times.1, ONE)
        };
        let reference = self.id.replacen('H', "H0", 1);
        let together = cell(
            self.id.clone(),
            "H",
            text(&self.id, self.newcomers),
            *seeds,
            full(path, times.0),
            Facts { reference: Some(reference.clone()), ..facts(path) },
        );
        let alone =
            cell(reference.clone(), "H0", text(&reference, 0), *seeds, full(path, times.0), facts(path));
        [together, Cell { takes: Takes::Nobody, ..alone }]
    }
}

pub(super) fn harm(victim: &'static str, buffer: f64, times: Times, seeds: u32) -> [Cell; 2] {
    Beside::new(format!("H-{victim}-{}", n(buffer)), Path::p0(buffer), victim, times, seeds).cells()
}

/// Downloads of clients, sizes from a heavy-tailed distribution.
fn clients(conn: &str) -> String {
    format!(
        "[[app]]\nname = \"web\"\nkind = \"download\"\nfrom = \"client\"\nto = \"server\"\njitter = \"1s\"\n\
         size = {{ pareto = \"10k\", shape = 1.2 }}\nwait = {{ exponential = \"1s\" }}\nconn = {{ {conn} }}\n\n"
    )
}

/// A dumbbell in the direction of downloads: servers send, eight clients receive.
fn web_network(path: &Path, with_sender: bool) -> String {
    let mut text = node("client", 8) + &node("server", 1);
    text +=
        "[[node]]\nname = \"left\"\nkind = \"router\"\n\n[[node]]\nname = \"right\"\nkind = \"router\"\n\n";
    let edge = |from: &str, to: &str, delay: f64| {
        format!(
            "[[link]]\nbetween = [\"{from}\", \"{to}\"]\nrate = \"1gbit\"\ndelay = \"{}\"\n\
             queue = {{ kind = \"drop-tail\", limit = \"10000p\" }}\n\n",
            ms(delay)
        )
    };
    let rest = path.rtt / 2.0 - 2.0;
    text += &edge("server", "left", rest);
    text += &edge("right", "client", 1.0);
    if with_sender {
        text += &node("sender", 1);
        text += &node("receiver", 1);
        text += &edge("sender", "left", rest);
        text += &edge("right", "receiver", 1.0);
    }
    let queue = path.queue.clone();
    let queue = queue.unwrap_or_else(|| format!("{{ kind = \"drop-tail\", limit = \"{}p\" }}", path.limit()));
    text + &format!(
        "[[link]]\nname = \"bottleneck\"\nbetween = [\"left\", \"right\"]\nrate = \"{}\"\ndelay = \"1ms\"\n\
         queue = {queue}\nback = {{ rate = \"1gbit\", queue = {{ kind = \"drop-tail\", limit = \"10000p\" }}, \
         impairments = [{{ kind = \"jitter\", limit = \"200us\" }}] }}\n\n",
        rate(path.rate)
    )
}

/// W and H-web: clients of CUBIC beside one flow of the policy; and without it.
fn web(id: &str, family: &'static str, buffer: f64, times: Times, seeds: u32) -> [Cell; 2] {
    let path = Path::p0(buffer);
    let text = |id: &str, beside: bool| {
        let bulk = if beside { bulk("a", "sender", "receiver", 0.0, &policy()) } else { String::new() };
        head(id, times.0, LARGE)
            + &web_network(&path, beside)
            + &clients(&other("cubic"))
            + &bulk
            + &measure(times.1, ONE)
    };
    let reference = format!("{id}-alone");
    let facts = Facts { reference: Some(reference.clone()), ..facts(&path) };
    let alone = cell(
        reference.clone(),
        "H0",
        text(&reference, false),
        seeds,
        0.1 * full(&path, times.0),
        facts.clone(),
    );
    [
        cell(id.to_owned(), family, text(id, true), seeds, full(&path, times.0), facts),
        Cell { takes: Takes::Nobody, ..alone },
    ]
}

/// F: clients of the policy on an idle path, and files of fixed sizes.
fn short(rate: f64, times: Times, seeds: u32) -> Cell {
    let path = Path::new(rate, 40.0, 1.0);
    let id = format!("F-{rate}");
    let mut text = head(&id, times.0, LARGE) + &web_network(&path, false) + &clients(&policy());
    for (size, wait) in [("10k", 1.0), ("100k", 1.5), ("1M", 4.0), ("10M", 20.0)] {
        text += &format!(
            "[[app]]\nname = \"f{size}\"\nkind = \"download\"\nfrom = \"client-1\"\nto = \"server\"\njitter = \"1s\"\n\
             size = \"{size}\"\nwait = \"{}\"\nconn = {{ {} }}\n\n",
            s(wait),
            policy()
        );
    }
    text += &measure(times.1, ONE);
    cell(id, "F", text, seeds, 0.4 * full(&path, times.0), facts(&path))
}

/// H-rt: 50 frames a second of 1 Mbit/s, beside one flow of the policy.
fn frames(times: Times, seeds: u32) -> Cell {
    let path = Path::p0(4.0);
    let id = "H-rt".to_owned();
    let senders = ["camera", "sender"].map(|name| Senders { name, count: 1, rtt: path.rtt });
    let text = head(&id, times.0, LARGE)
        + &dumbbell(&path, FAST, &senders)
        + "[[app]]\nname = \"rt\"\nkind = \"request\"\nfrom = \"receiver\"\nto = \"camera\"\nrequest = 100\n\
           response = 2500\nthink = \"20ms\"\nconn = { cc = \"cubic\" }\n\n"
        + &bulk("a", "sender", "receiver", 0.0, &policy())
        + &measure(times.1, ONE);
    cell(id, "H-rt", text, seeds, full(&path, times.0), facts(&path))
}

/// U: small requests beside flows of the policy.
pub(super) fn requests(count: u32, times: Times, seeds: u32) -> Cell {
    let path = Path::p0(4.0);
    let id = format!("U-{count}");
    let senders = [
        Senders { name: "server", count: 1, rtt: path.rtt },
        Senders { name: "sender", count, rtt: path.rtt },
    ];
    let text = head(&id, times.0, if count >= 8 { small(&path) } else { LARGE })
        + &dumbbell(&path, FAST, &senders)
        + "[[app]]\nname = \"rpc\"\nkind = \"request\"\nfrom = \"receiver\"\nto = \"server\"\nrequest = 100\n\
           response = 1000\nthink = { exponential = \"200ms\" }\nconn = { cc = \"cubic\" }\n\n"
        + &bulk("a", "sender", "receiver", 0.0, &policy())
        + &measure(times.1, ONE);
    cell(id, "U", text, seeds, full(&path, times.0), facts(&path))
}

/// A change of the bottleneck.
fn change(at: f64, what: &str) -> String {
    format!("[[change]]\nat = \"{}\"\nlink = \"bottleneck\"\n{what}\n\n", s(at))
}

/// P: the rate falls and rises again.
fn rate_steps(high: f64, low: f64, at: [f64; 2], times: Times, seeds: u32) -> Cell {
    let mut cell = one("P-rate".to_owned(), "P", &Path::new(high, 40.0, 1.0), times, seeds);
    let changes =
        change(at[0], &format!("rate = \"{low}mbit\"")) + &change(at[1], &format!("rate = \"{high}mbit\""));
    cell.text = cell.text.replace("[measure]", &(changes + "[measure]"));
    cell.facts.changes = at.to_vec();
    let mean = (high * (at[0] + times.0 - at[1]) + low * (at[1] - at[0])) / times.0;
    cell.facts.capacity = mean * 1e6 * PAYLOAD;
    cell.packets *= mean / high;
    cell
}

/// P: the path becomes longer, and short again.
fn delay_steps(times: Times, seeds: u32) -> Cell {
    let mut cell = one("P-delay".to_owned(), "P", &Path::new(20.0, 40.0, 1.0), times, seeds);
    let both = |delay: &str| format!("delay = \"{delay}\"");
    let changes = change(40.0, &both("100ms")) + &change(80.0, &both("20ms"));
    cell.text = cell.text.replace("[measure]", &(changes + "[measure]"));
    cell.facts.changes = vec![40.0, 80.0];
    cell
}

/// P: the rate fades to a tenth within 5 s, and comes back, in steps of 100 ms.
fn fade(times: Times, seeds: u32) -> Cell {
    let mut cell = one("P-fade".to_owned(), "P", &Path::p0(1.0), times, seeds);
    let mut changes = String::new();
    for step in 1..=50 {
        let rate = |step: f64| 20.0 - 18.0 * step / 50.0;
        let at = |from: f64| from + 0.1 * f64::from(step);
        changes += &change(at(30.0), &format!("rate = \"{}kbit\"", libm::round(rate(f64::from(step)) * 1e3)));
        changes +=
            &change(at(50.0), &format!("rate = \"{}kbit\"", libm::round(rate(f64::from(50 - step)) * 1e3)));
    }
    cell.text = cell.text.replace("[measure]", &(changes + "[measure]"));
    cell.facts.changes = vec![55.0];
    cell
}

/// P: everything that is sent is lost for a while.
pub(super) fn outage(length: f64, times: Times, seeds: u32) -> Cell {
    let id = format!("P-out-{length}");
    let window = (40.0, 40.0 + length);
    let gone = format!("{{ kind = \"drop\", from = \"{}\", until = \"{}\" }}", s(window.0), s(window.1));
    let path = Path::p0(1.0).impaired(&gone).back_impaired(&gone);
    let mut cell = one(id, "P", &path, times, seeds);
    cell.text += "drops = 20000\n";
    cell.facts.outage = Some(window);
    cell
}

/// J: what a wireless link does to packets without losing them.
fn disturbed(id: &str, there: &str, back: &str, times: Times, seeds: u32) -> Cell {
    let mut cell =
        one(format!("J-{id}"), "J", &Path::p0(1.0).impaired(there).back_impaired(back), times, seeds);
    cell.facts.reference = Some("S-20-40-1".to_owned());
    cell
}

const LATE: &str = "{ kind = \"reorder\", probability = 0.01, by = \"10ms\" }";
const JITTER: &str = "{ kind = \"jitter\", limit = \"10ms\" }";
const SHUFFLE: &str = "{ kind = \"jitter\", limit = \"10ms\", reorders = true }";

/// V: one flow of CUBIC the other way.
fn two_way(times: Times, seeds: u32) -> Cell {
    let mut path = Path::p0(1.0);
    path.back = Some(format!("{{ queue = {{ kind = \"drop-tail\", limit = \"{}p\" }} }}", path.limit()));
    let senders = [Senders { name: "sender", count: 1, rtt: path.rtt }];
    let text = head("V-two-way", times.0, LARGE)
        + &dumbbell(&path, FAST, &senders)
        + &bulk("a", "sender", "receiver", 0.0, &policy())
        + &bulk("up", "receiver", "sender", 0.0, &other("cubic"))
        + &measure(times.1, ONE);
    let facts = Facts { reference: Some("S-20-40-1".to_owned()), ..facts(&path) };
    cell("V-two-way".to_owned(), "V", text, seeds, full(&path, times.0), facts)
}

/// V: the way back is so slow that ACKs limit the flow.
fn asymmetric(times: Times, seeds: u32) -> Cell {
    let mut path = Path::p0(1.0);
    path.back = Some("{ rate = \"500kbit\", queue = { kind = \"drop-tail\", limit = \"50p\" } }".to_owned());
    let mut cell = one("V-asymmetric".to_owned(), "V", &path, times, seeds);
    cell.facts.reference = Some("S-20-40-1".to_owned());
    cell
}

/// O: a policer drops what exceeds 10 Mbit/s, after a bucket of tokens.
fn policed(bucket: u32, times: Times, seeds: u32) -> Cell {
    let policer = format!("{{ kind = \"policer\", rate = \"10mbit\", bucket = \"{bucket}k\" }}");
    let mut cell =
        one(format!("O-{bucket}"), "O", &Path::new(50.0, 40.0, 1.0).impaired(&policer), times, seeds);
    cell.facts.capacity = 10e6 * PAYLOAD;
    cell.packets *= 0.2;
    cell
}

/// M: one flow over three bottlenecks, each with one of CUBIC.
fn three(times: Times, seeds: u32) -> Cell {
    let path = Path::p0(1.0);
    let mut text =
        head("M", times.0, LARGE) + &parking_lot(&path) + &bulk("a", "long", "end", 0.0, &policy());
    for hop in 1..=3 {
        text +=
            &bulk(&format!("x{hop}"), &format!("cross-{hop}"), &format!("sink-{hop}"), 0.0, &other("cubic"));
    }
    text += &measure(times.1, "[\"bottleneck-1\", \"bottleneck-2\", \"bottleneck-3\"]");
    cell("M".to_owned(), "M", text, seeds, 3.0 * full(&path, times.0), facts(&path))
}

/// Q: two flows of the policy through an AQM.
pub(super) fn managed(id: &str, queue: &str, beside: Option<&str>, times: Times, seeds: u32) -> Cell {
    let path = Path::p0(4.0).queue(queue);
    let senders = ["first", "second"].map(|name| Senders { name, count: 1, rtt: path.rtt });
    let marks = !queue.contains("action = \"drop\"");
    let ours = if marks { format!("{}, ecn = \"{ECN}\"", policy()) } else { policy() };
    let second = beside.map_or_else(|| ours.clone(), |cc| format!("cc = \"{cc}\", ecn = \"classic\""));
    // On an idle path, so that no SYN meets a marking queue: dropped, it would ask for no ECN again.
    let start = |name: &str, from: &str, conn: &str| bulk(name, from, "receiver", 0.0, conn);
    let text = head(&format!("Q-{id}"), times.0, LARGE)
        + &dumbbell(&path, FAST, &senders)
        + &start("a", "first", &ours)
        + &start(if beside.is_some() { "v" } else { "second" }, "second", &second)
        + &measure(times.1, ONE);
    cell(format!("Q-{id}"), "Q", text, seeds, full(&path, times.0), facts(&path))
}

/// T: the links of [`crate::scenario::paths`] that change all the time.
fn varying(name: &str, times: Times, seeds: u32) -> Cell {
    let mut path = Path::new(12.0, 50.0, 1.0);
    path.line = Some(format!("path = \"{name}:rate=12mbit\"\ndelay = \"25ms\""));
    path.queue = Some("{ kind = \"drop-tail\", limit = \"1000p\" }".to_owned());
    let mut cell = one(format!("T-{name}"), "T", &path, times, seeds);
    // Fill is compared between controls alone: what the path could carry depends on its seed.
    cell.facts.capacity = 12e6 * PAYLOAD;
    cell
}

/// CoDel that drops, within 4 BDP.
pub(super) const CODEL_DROP: &str = "{ kind = \"codel\", limit = \"267p\", action = \"drop\" }";

pub(super) fn whole() -> Vec<Cell> {
    let mut cells = vec![];
    for rate in [2.0, 20.0, 100.0] {
        for rtt in [10.0, 40.0, 160.0] {
            let times = if rtt > 100.0 { Times(240.0, 60.0) } else { Times(60.0, 20.0) };
            cells.extend([0.25, 1.0, 4.0].map(|buffer| alone(rate, rtt, buffer, times, 3)));
        }
    }
    cells.push(alone(1_000.0, 20.0, 1.0, Times(30.0, 10.0), 1));
    cells.push(one("G-geo".to_owned(), "G", &Path::new(10.0, 600.0, 1.0), Times(300.0, 60.0), 3));
    let iot = Path::new(0.128, 300.0, 1.0).queue("{ kind = \"drop-tail\", limit = \"8p\" }");
    cells.push(one("I-iot".to_owned(), "I", &iot, Times(300.0, 30.0), 3));
    let slow = Times(180.0, 20.0);
    for (name, probability) in [("1e-4", 1e-4), ("1e-3", 1e-3), ("1e-2", 1e-2), (".05", 0.05), (".15", 0.15)]
    {
        cells.push(lossy(&format!("L-{name}"), 20.0, &loss(probability), probability, slow, 5));
    }
    cells.push(lossy("L-burst", 20.0, BURST, 0.01, slow, 5));
    for (name, probability) in [("3e-4", 3e-4), ("1e-3", 1e-3), ("1e-2", 1e-2)] {
        cells.push(lossy(&format!("L-fn-{name}"), 100.0, &loss(probability), probability, slow, 3));
    }
    for count in [2, 8, 32] {
        cells.extend([0.25, 1.0].map(|buffer| equals(count, buffer, Times(120.0, 30.0), 5)));
    }
    cells.extend([1.0, 4.0].map(|buffer| joins(buffer, Times(150.0, 30.0), 5)));
    cells.extend([40.0, 80.0, 160.0].map(|rtt| far(50.0, rtt, Times(160.0, 40.0), 5)));
    for victim in ["cubic", "reno"] {
        for buffer in [0.25, 1.0, 4.0, 16.0] {
            cells.extend(harm(victim, buffer, Times(200.0, 40.0), 5));
        }
        let new = |id: String, path, times| Beside::new(id, path, victim, times, 5);
        let mut slow = new(format!("H-{victim}-slow"), Path::p0(1.0), Times(200.0, 40.0));
        slow.access = "40mbit";
        cells.extend(slow.cells());
        for (name, victims, newcomers) in [("many", 8, 1), ("few", 1, 8)] {
            let mut many = new(format!("H-{victim}-{name}"), Path::new(50.0, 40.0, 1.0), Times(160.0, 40.0));
            (many.victims, many.newcomers) = (victims, newcomers);
            cells.extend(many.cells());
        }
        cells.extend(
            new(format!("H-{victim}-long"), Path::new(100.0, 100.0, 1.0), Times(200.0, 60.0)).cells(),
        );
    }
    let usual = Times(120.0, 20.0);
    cells.push(frames(usual, 5));
    cells.extend(web("H-web-1", "W", 1.0, usual, 5));
    cells.extend(web("W", "W", 4.0, usual, 5));
    cells.extend([short(20.0, usual, 5), short(100.0, Times(60.0, 5.0), 5)]);
    cells.extend([1, 4, 16].map(|count| requests(count, usual, 5)));
    cells.push(rate_steps(50.0, 10.0, [40.0, 80.0], Times(120.0, 10.0), 3));
    cells.push(delay_steps(Times(120.0, 10.0), 3));
    cells.push(fade(Times(80.0, 10.0), 3));
    cells.extend([2.0, 10.0].map(|length| outage(length, Times(80.0, 10.0), 3)));
    cells.extend(["lte", "wifi", "leo", "5g"].map(|name| varying(name, Times(60.0, 5.0), 3)));
    let disturb = |id: &str, there: &str, back: &str| disturbed(id, there, back, Times(60.0, 20.0), 5);
    cells.push(disturb("late", LATE, ""));
    cells.push(disturb("jitter", JITTER, ""));
    cells.push(disturb("shuffle", SHUFFLE, ""));
    cells.push(disturb("acks", "", "{ kind = \"batch\", every = \"5ms\" }"));
    cells.extend([two_way(usual, 5), asymmetric(usual, 5)]);
    cells.extend([50, 250].map(|bucket| policed(bucket, Times(60.0, 20.0), 5)));
    cells.push(three(Times(120.0, 30.0), 5));
    let q = |id: &str, queue: &str| managed(id, queue, None, Times(60.0, 20.0), 5);
    cells.push(q("codel", CODEL_DROP));
    cells.push(q(
        "red",
        "{ kind = \"red\", limit = \"400k\", min = \"25k\", max = \"75k\", adaptive = true, action = \"drop\" }",
    ));
    cells.push(q("pie", "{ kind = \"pie\", limit = \"267p\", action = \"drop\" }"));
    cells.push(q("codel-mark", "{ kind = \"codel\", limit = \"267p\" }"));
    let step = q("step", "{ kind = \"step\", limit = \"267p\", threshold = 30000 }");
    cells.push(Cell { takes: Takes::Ecn, ..step });
    let dual =
        managed("dualpi2", "{ kind = \"dualpi2\", limit = \"267p\" }", Some("cubic"), Times(60.0, 20.0), 5);
    cells.push(Cell { takes: Takes::Ecn, ..dual });
    cells
}

pub(super) fn quick() -> Vec<Cell> {
    let minute = Times(60.0, 20.0);
    let mut cells: Vec<Cell> = [0.25, 1.0, 4.0].map(|buffer| alone(20.0, 40.0, buffer, minute, 2)).to_vec();
    cells.push(lossy("L-1e-2", 20.0, &loss(1e-2), 1e-2, minute, 2));
    cells.push(lossy("L-burst", 20.0, BURST, 0.01, minute, 2));
    cells.push(equals(8, 1.0, minute, 2));
    cells.push(joins(1.0, Times(100.0, 30.0), 2));
    cells.push(far(20.0, 80.0, Times(80.0, 20.0), 2));
    cells.extend(harm("cubic", 1.0, Times(100.0, 40.0), 2));
    cells.extend(harm("reno", 4.0, Times(100.0, 40.0), 2));
    cells.push(requests(4, minute, 2));
    cells.extend(web("W", "W", 4.0, minute, 2));
    cells.push(disturbed("late", LATE, "", minute, 2));
    cells.push(disturbed("shuffle", SHUFFLE, "", minute, 2));
    cells.push(managed("codel", CODEL_DROP, None, minute, 2));
    cells.push(rate_steps(20.0, 4.0, [20.0, 40.0], Times(60.0, 5.0), 2));
    cells
}
