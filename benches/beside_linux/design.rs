//! What is varied: one thing at a time around a base path.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How long the runs of --quick are beside those of the whole.
pub(crate) const QUICK: f64 = 0.3;

/// Runs of each cell and sender, with different seeds.
pub(crate) const ROUNDS: u32 = 3;

/// Rate of the base path, Mbit/s.
const RATE: f64 = 20.0;
/// Its round trip, ms.
const ROUND_TRIP: f64 = 40.0;

/// Whose TCP sends, with which congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sender {
    KernelCubic,
    Cubic,
    KernelReno,
    Reno,
    KernelBbr,
    Bbr,
    /// ackline's CUBIC to ackline, in virtual time.
    Simulated,
}

impl Sender {
    /// Those that send in real time: columns of the tables.
    pub(crate) const LIVE: [Self; 6] =
        [Self::KernelCubic, Self::Cubic, Self::KernelReno, Self::Reno, Self::KernelBbr, Self::Bbr];
    pub(crate) const ALL: [Self; 7] = [
        Self::KernelCubic,
        Self::Cubic,
        Self::KernelReno,
        Self::Reno,
        Self::KernelBbr,
        Self::Bbr,
        Self::Simulated,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::KernelCubic => "kernel cubic",
            Self::Cubic => "cubic",
            Self::KernelReno => "kernel reno",
            Self::Reno => "reno",
            Self::KernelBbr => "kernel bbr",
            Self::Bbr => "bbr",
            Self::Simulated => "cubic, simulated",
        }
    }

    /// Settings of the scenario; with ECN if `ecn`.
    fn settings(self, ecn: bool) -> Vec<String> {
        let kernel = |cc: &str| {
            let ecn = if ecn { ", \"net.ipv4.tcp_ecn\" = 1" } else { "" };
            let sysctl = format!("{{ \"net.ipv4.tcp_no_metrics_save\" = 1{ecn} }}");
            vec![format!("node.sender.kernel={{ cc = \"{cc}\", sysctl = {sysctl} }}")]
        };
        let ackline = |cc: &str| {
            // Settings of the kernel are for hosts of the kernel only.
            let mut set = vec![
                "node.sender={ name = \"sender\", world = \"live\" }".to_owned(),
                format!("conn.cc={cc}"),
            ];
            set.extend(ecn.then(|| "conn.ecn=classic".to_owned()));
            set
        };
        match self {
            Self::KernelCubic => kernel("cubic"),
            Self::KernelReno => kernel("reno"),
            Self::KernelBbr => kernel("bbr"),
            Self::Cubic | Self::Simulated => ackline("cubic"),
            Self::Reno => ackline("reno"),
            Self::Bbr => ackline("bbr"),
        }
    }
}

/// What is varied, and how the page calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Loss,
    Reordering,
    RoundTrip,
    Rate,
    Buffer,
    Ecn,
    Transfers,
    LossyTransfers,
}

impl Axis {
    pub(crate) const ALL: [Self; 8] = [
        Self::Loss,
        Self::Reordering,
        Self::RoundTrip,
        Self::Rate,
        Self::Buffer,
        Self::Ecn,
        Self::Transfers,
        Self::LossyTransfers,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Reordering => "reordering",
            Self::RoundTrip => "round-trip",
            Self::Rate => "rate",
            Self::Buffer => "buffer",
            Self::Ecn => "queue",
            Self::Transfers => "transfer",
            Self::LossyTransfers => "transfer-loss",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Loss => "Loss, each packet independently",
            Self::Reordering => "Reordering: packets that come later than those behind them",
            Self::RoundTrip => "Round trip, with a buffer of one product of rate and round trip",
            Self::Rate => "Rate, with a buffer of one product of rate and round trip",
            Self::Buffer => "Buffer, in products of rate and round trip (100 kB)",
            Self::Ecn => "Queues that mark or drop before they are full",
            Self::Transfers => "Transfers, one after the other, each on a new connection",
            Self::LossyTransfers => "The same at 1 % loss",
        }
    }

    pub(crate) const fn is_of_transfers(self) -> bool {
        matches!(self, Self::Transfers | Self::LossyTransfers)
    }
}

/// One path and what goes over it.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) axis: Axis,
    pub(crate) name: &'static str,
    /// Length of a run, and of what of it is not measured, s.
    seconds: (f64, f64),
    /// Mbit/s that the path carries, and a sender that heeds losses.
    load: (f64, f64),
    ecn: bool,
    pub(crate) quick: bool,
    set: Vec<String>,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.axis.name(), self.name)
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cell = cells().into_iter().find(|cell| cell.to_string() == text);
        cell.ok_or_else(|| format!("no cell is called {text:?}"))
    }
}

impl Cell {
    fn new(axis: Axis, name: &'static str, set: impl IntoIterator<Item = String>) -> Self {
        let set = set.into_iter().collect();
        Self { axis, name, seconds: (20.0, 5.0), load: (RATE, RATE), ecn: false, quick: false, set }
    }

    fn lasting(self, seconds: f64, unmeasured: f64) -> Self {
        Self { seconds: (seconds, unmeasured), ..self }
    }

    /// A path of this rate, Mbit/s.
    fn of_rate(self, rate: f64) -> Self {
        Self { load: (rate, rate), ..self }
    }

    /// A sender that heeds losses does not fill it: Mbit/s.
    fn filled_to(self, rate: f64) -> Self {
        Self { load: (self.load.0, rate), ..self }
    }

    fn ecn(self) -> Self {
        Self { ecn: true, ..self }
    }

    fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    /// Mbit/s that a run carries at most.
    pub(crate) const fn load(&self, sender: Sender) -> f64 {
        match sender {
            Sender::KernelBbr | Sender::Bbr => self.load.0,
            _ => self.load.1,
        }
    }

    /// For tables of several axes.
    pub(crate) fn title(&self) -> String {
        format!("{}: {}", self.axis.name(), self.name)
    }

    /// What differs from the base path.
    pub(crate) fn changes(&self) -> &[String] {
        &self.set
    }

    /// Settings of the scenario; runs take `longer` times as long.
    pub(crate) fn settings(&self, sender: Sender, longer: f64) -> Vec<String> {
        let mut set = self.set.clone();
        set.extend(sender.settings(self.ecn));
        let millis = |seconds: f64| (seconds * longer * 1e3).round();
        set.push(format!("duration={}ms", millis(self.seconds.0)));
        set.push(format!("measure.from={}ms", millis(self.seconds.1)));
        set
    }
}

/// A path of this rate (Mbit/s), round trip (ms) and buffer (in products of the two).
fn path(rate: f64, round_trip: f64, buffer: f64) -> Vec<String> {
    let bytes = (rate * 1e3 / 8.0 * round_trip * buffer).round();
    vec![
        format!("link.path.rate={}kbit", (rate * 1e3).round()),
        format!("link.path.delay={}us", (round_trip * 500.0).round()),
        format!("link.path.queue={{ kind = \"drop-tail\", limit = \"{bytes}\" }}"),
    ]
}

fn impaired(impairment: &str) -> Vec<String> {
    vec![format!("link.path.impairments=[{{ {impairment} }}]")]
}

fn loss(share: &str) -> Vec<String> {
    impaired(&format!("kind = \"loss\", probability = \"{share}\""))
}

fn reordering(share: &str, by: &str) -> Vec<String> {
    impaired(&format!("kind = \"reorder\", probability = \"{share}\", by = \"{by}\""))
}

fn queue(text: &str) -> Vec<String> {
    vec![format!("link.path.queue={{ {text} }}")]
}

fn transfers(size: &str, more: Vec<String>) -> Vec<String> {
    let mut set = more;
    set.extend([format!("app.flow.size={size}"), "app.flow.transfers=100000".to_owned()]);
    set
}

/// All of them.
pub(crate) fn cells() -> Vec<Cell> {
    use Axis::{Buffer, Ecn, Loss, LossyTransfers, Rate, Reordering, RoundTrip, Transfers};
    let mut cells = vec![
        Cell::new(Loss, "none", vec![]).quick(),
        Cell::new(Loss, "0.01 %", loss("0.01%")).lasting(45.0, 5.0),
        Cell::new(Loss, "0.1 %", loss("0.1%")).lasting(45.0, 5.0).filled_to(12.0),
        Cell::new(Loss, "0.5 %", loss("0.5%")).lasting(45.0, 5.0).filled_to(6.0),
        Cell::new(Loss, "1 %", loss("1%")).lasting(45.0, 5.0).filled_to(4.0).quick(),
        Cell::new(Loss, "3 %", loss("3%")).lasting(45.0, 5.0).filled_to(2.0),
        Cell::new(Reordering, "1 % by 2 ms", reordering("1%", "2ms")),
        Cell::new(Reordering, "1 % by 10 ms", reordering("1%", "10ms")).quick(),
        Cell::new(Reordering, "1 % by 60 ms", reordering("1%", "60ms")),
        Cell::new(RoundTrip, "5 ms", path(RATE, 5.0, 1.0)),
        Cell::new(RoundTrip, "20 ms", path(RATE, 20.0, 1.0)),
        Cell::new(RoundTrip, "100 ms", path(RATE, 100.0, 1.0)).lasting(35.0, 10.0),
        Cell::new(RoundTrip, "200 ms", path(RATE, 200.0, 1.0)).lasting(50.0, 15.0),
        Cell::new(Rate, "2 Mbit/s", path(2.0, ROUND_TRIP, 1.0)).of_rate(2.0),
        Cell::new(Rate, "5 Mbit/s", path(5.0, ROUND_TRIP, 1.0)).of_rate(5.0),
        Cell::new(Rate, "50 Mbit/s", path(50.0, ROUND_TRIP, 1.0)).of_rate(50.0),
        Cell::new(Rate, "200 Mbit/s", path(200.0, ROUND_TRIP, 1.0)).of_rate(200.0),
    ];
    let buffers = [("0.2", 0.2), ("0.5", 0.5), ("2", 2.0), ("4", 4.0)];
    cells.extend(buffers.map(|(name, buffer)| {
        let cell = Cell::new(Buffer, name, path(RATE, ROUND_TRIP, buffer));
        if buffer < 0.3 { cell.quick() } else { cell }
    }));
    let codel = || queue("kind = \"codel\", limit = \"1000p\"");
    let step = || queue("kind = \"step\", limit = \"1000p\", threshold = 50000");
    cells.extend([
        Cell::new(Ecn, "CoDel, without ECN", codel()),
        Cell::new(Ecn, "CoDel, ECN", codel()).ecn().quick(),
        Cell::new(Ecn, "marks beyond 50 kB, ECN", step()).ecn(),
    ]);
    for (axis, share) in [(Transfers, None), (LossyTransfers, Some("1%"))] {
        let seconds = |clean: f64, lossy: f64| if share.is_some() { lossy } else { clean };
        let loss = || share.map(loss).unwrap_or_default();
        let rate = |clean: f64, lossy: f64| if share.is_some() { lossy } else { clean };
        cells.extend([
            Cell::new(axis, "10 kB", transfers("10000", loss()))
                .lasting(seconds(8.0, 20.0), 0.0)
                .of_rate(1.0),
            Cell::new(axis, "100 kB", transfers("100000", loss()))
                .lasting(seconds(10.0, 30.0), 0.0)
                .of_rate(4.0)
                .quick(),
            Cell::new(axis, "1 MB", transfers("1000000", loss()))
                .lasting(seconds(15.0, 60.0), 0.0)
                .filled_to(rate(12.0, 6.0)),
            Cell::new(axis, "10 MB", transfers("10000000", loss()))
                .lasting(seconds(25.0, 100.0), 0.0)
                .filled_to(rate(18.0, 4.0)),
        ]);
    }
    cells
}
