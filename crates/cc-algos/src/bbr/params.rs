//! The parameters of BBR (section 2).

use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::{Param, ParamInfo};
use ackline_tcp_core::policy::{Params, SpecError};

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

/// A number as an integer of `parts` per one, rounded.
fn in_parts(param: &Param<'_>, range: core::ops::RangeInclusive<f64>, parts: f64) -> Result<u32, SpecError> {
    // The ranges are small and positive.
    Ok((param.number(range)? * parts + 0.5) as u32)
}

fn seconds(param: &Param<'_>, least: Duration, most: u64) -> Result<Duration, SpecError> {
    param.duration(least..=Duration::from_secs(most))
}

impl BbrParams {
    /// The parameters of `bbr`.
    pub const TABLE: &[ParamInfo] = &[
        info("loss_thresh", "0.02", "0.0001..0.5", "part of a round trip's data that may be lost"),
        info("min_loss_ranges", "1", "1..8", "separate losses in a round trip that end a probe"),
        info("beta", "0.7", "0.1..0.95", "part of a bound that is left after losses"),
        info("headroom", "0.15", "0..0.5", "part of the long-term bound that is left to others"),
        info("startup_gain", "2.77", "1.1..4", "pacing gain of Startup"),
        info("drain_gain", "0.5", "0.1..0.95", "pacing gain of Drain"),
        info("down_gain", "0.9", "0.5..0.99", "pacing gain of Down"),
        info("up_gain", "1.25", "1.05..2", "pacing gain of Up"),
        info("cwnd_gain", "2", "1..4", "bandwidth-delay products that the window holds"),
        info("margin", "0.01", "0..0.1", "part of the rate that is not used"),
        info("probe_wait", "2s", "100ms..60s", "least time between two probes for bandwidth"),
        info("probe_jitter", "1s", "0ms..60s", "most that is added to it at random"),
        info("probe_rounds", "63", "1..1000", "most rounds between two probes"),
        info("probe_rtt_interval", "5s", "1s..600s", "time without a lower RTT before ProbeRTT"),
        info("probe_rtt_time", "200ms", "10ms..10s", "how long ProbeRTT keeps the flight small"),
        info("probe_rtt_gain", "0.5", "0.1..1", "bandwidth-delay products in flight then"),
        info("min_rtt_window", "10s", "1s..600s", "how long the lowest RTT is believed"),
    ];

    /// The same with the given changes.
    ///
    /// # Errors
    /// Names the parameter that is unknown or out of range.
    pub fn with(mut self, params: &Params) -> Result<Self, SpecError> {
        for param in params.iter() {
            match param.key() {
                "loss_thresh" => self.loss_thresh = in_parts(&param, 0.0001..=0.5, 1e4)?,
                "min_loss_ranges" => {
                    self.min_loss_ranges = u32::try_from(param.integer(1..=8)?).unwrap_or(1);
                }
                "beta" => self.beta = in_parts(&param, 0.1..=0.95, 100.0)?,
                "headroom" => self.headroom = in_parts(&param, 0.0..=0.5, 100.0)?,
                "startup_gain" => self.startup_gain = in_parts(&param, 1.1..=4.0, 100.0)?,
                "drain_gain" => self.drain_gain = in_parts(&param, 0.1..=0.95, 100.0)?,
                "down_gain" => self.down_gain = in_parts(&param, 0.5..=0.99, 100.0)?,
                "up_gain" => self.up_gain = in_parts(&param, 1.05..=2.0, 100.0)?,
                "cwnd_gain" => self.cwnd_gain = in_parts(&param, 1.0..=4.0, 100.0)?,
                "margin" => self.margin = in_parts(&param, 0.0..=0.1, 100.0)?,
                "probe_wait" => self.probe_wait = seconds(&param, Duration::from_millis(100), 60)?,
                "probe_jitter" => self.probe_jitter = seconds(&param, Duration::ZERO, 60)?,
                "probe_rounds" => self.probe_rounds = param.integer(1..=1_000)?,
                "probe_rtt_interval" => {
                    self.probe_rtt_interval = seconds(&param, Duration::from_secs(1), 600)?;
                }
                "probe_rtt_time" => self.probe_rtt_time = seconds(&param, Duration::from_millis(10), 10)?,
                "probe_rtt_gain" => self.probe_rtt_gain = in_parts(&param, 0.1..=1.0, 100.0)?,
                "min_rtt_window" => self.min_rtt_window = seconds(&param, Duration::from_secs(1), 600)?,
                _ => return Err(param.unknown("bbr", Self::TABLE)),
            }
        }
        Ok(self)
    }
}

const fn info(
    name: &'static str,
    default: &'static str,
    range: &'static str,
    summary: &'static str,
) -> ParamInfo {
    ParamInfo { name, default, range, summary }
}
