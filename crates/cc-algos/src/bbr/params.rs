//! The parameters of BBR (section 2).

use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::{Key, Keyed};

/// BBR's parameters. Gains and parts are in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BbrParams {
    /// Lost part of a round trip's data that counts as too much, in hundredths of a percent: 1 to
    /// 5000 (the draft: 200).
    pub loss_thresh: u32,
    /// Separate ranges that a round trip must lose before a probe counts as too much, 1 to 8 (the
    /// draft: 1). With 2, one lost segment of a small flight does not.
    pub min_loss_ranges: u32,
    /// Part of a bound that is left after losses, 10 to 95 (the draft: 70).
    pub beta: u32,
    /// Part of the long-term bound that Cruise leaves to others, 0 to 50 (the draft: 15).
    pub headroom: u32,
    /// Pacing gain of Startup, 110 to 400 (the draft: 277, 4 ln 2).
    pub startup_gain: u32,
    /// Pacing gain of Drain, 10 to 95 (the draft: 50).
    pub drain_gain: u32,
    /// Pacing gain of Down, 50 to 99 (the draft: 90).
    pub down_gain: u32,
    /// Pacing gain of Up, 105 to 200 (the draft: 125).
    pub up_gain: u32,
    /// Bandwidth-delay products that the window holds, 100 to 400 (the draft: 200); a quarter more
    /// in Up.
    pub cwnd_gain: u32,
    /// Part of the rate that is not used, 0 to 10 (the draft: 1).
    pub margin: u32,
    /// Least time between two probes for bandwidth, 100 ms to 60 s (the draft: 2 s).
    pub probe_wait: Duration,
    /// What is drawn at random is added to it, 0 to 60 s (the draft: up to 1 s).
    pub probe_jitter: Duration,
    /// Most rounds between two probes, 1 to 1000 (the draft: 63).
    pub probe_rounds: u64,
    /// Time without a lower RTT after which ProbeRTT comes, 1 to 600 s (the draft: 5 s).
    pub probe_rtt_interval: Duration,
    /// How long ProbeRTT keeps the flight small, 10 ms to 10 s (the draft: 200 ms).
    pub probe_rtt_time: Duration,
    /// Part of the bandwidth-delay product in flight in ProbeRTT, 10 to 100 (the draft: 50).
    pub probe_rtt_gain: u32,
    /// How long the lowest RTT is believed, 1 to 600 s (the draft: 10 s).
    pub min_rtt_window: Duration,
}

impl Default for BbrParams {
    fn default() -> Self {
        Self {
            loss_thresh: 200,
            min_loss_ranges: 1,
            beta: 70,
            headroom: 15,
            startup_gain: 277,
            drain_gain: 50,
            down_gain: 90,
            up_gain: 125,
            cwnd_gain: 200,
            margin: 1,
            probe_wait: Duration::from_secs(2),
            probe_jitter: Duration::from_secs(1),
            probe_rounds: 63,
            probe_rtt_interval: Duration::from_secs(5),
            probe_rtt_time: Duration::from_millis(200),
            probe_rtt_gain: 50,
            min_rtt_window: Duration::from_secs(10),
        }
    }
}

impl Keyed for BbrParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::parts(
            "loss_thresh",
            0.0001..=0.5,
            10_000,
            "part of a round trip's data that may be lost",
            |it| &mut it.loss_thresh,
        ),
        Key::integer("min_loss_ranges", 1..=8, "separate losses in a round trip that end a probe", |it| {
            &mut it.min_loss_ranges
        }),
        Key::parts("beta", 0.1..=0.95, 100, "part of a bound that is left after losses", |it| &mut it.beta),
        Key::parts("headroom", 0.0..=0.5, 100, "part of the long-term bound that is left to others", |it| {
            &mut it.headroom
        }),
        Key::parts("startup_gain", 1.1..=4.0, 100, "pacing gain of Startup", |it| &mut it.startup_gain),
        Key::parts("drain_gain", 0.1..=0.95, 100, "pacing gain of Drain", |it| &mut it.drain_gain),
        Key::parts("down_gain", 0.5..=0.99, 100, "pacing gain of Down", |it| &mut it.down_gain),
        Key::parts("up_gain", 1.05..=2.0, 100, "pacing gain of Up", |it| &mut it.up_gain),
        Key::parts("cwnd_gain", 1.0..=4.0, 100, "bandwidth-delay products that the window holds", |it| {
            &mut it.cwnd_gain
        }),
        Key::parts("margin", 0.0..=0.1, 100, "part of the rate that is not used", |it| &mut it.margin),
        Key::time(
            "probe_wait",
            Duration::from_millis(100)..=Duration::from_secs(60),
            "least time between two probes for bandwidth",
            |it| &mut it.probe_wait,
        ),
        Key::time(
            "probe_jitter",
            Duration::ZERO..=Duration::from_secs(60),
            "most that is added to it at random",
            |it| &mut it.probe_jitter,
        ),
        Key::count("probe_rounds", 1..=1_000, "most rounds between two probes", |it| &mut it.probe_rounds),
        Key::time(
            "probe_rtt_interval",
            Duration::from_secs(1)..=Duration::from_secs(600),
            "time without a lower RTT before ProbeRTT",
            |it| &mut it.probe_rtt_interval,
        ),
        Key::time(
            "probe_rtt_time",
            Duration::from_millis(10)..=Duration::from_secs(10),
            "how long ProbeRTT keeps the flight small",
            |it| &mut it.probe_rtt_time,
        ),
        Key::parts("probe_rtt_gain", 0.1..=1.0, 100, "bandwidth-delay products in flight then", |it| {
            &mut it.probe_rtt_gain
        }),
        Key::time(
            "min_rtt_window",
            Duration::from_secs(1)..=Duration::from_secs(600),
            "how long the lowest RTT is believed",
            |it| &mut it.min_rtt_window,
        ),
    ];
}
