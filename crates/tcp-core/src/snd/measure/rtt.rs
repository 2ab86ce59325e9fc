//! Round-trip times and the retransmission timeout (RFC 6298), in nanoseconds.
//!
//! Two smoothed values are kept. `srtt` comes from the oldest segment that an ACK covers, and so
//! includes the time that the receiver held its ACK: it feeds the timeout, one sample per round
//! trip (RFC 6298, section 3). `srtt_pace` comes from the newest covered segment, and so is free of
//! that delay: it feeds the pacer, one sample per ACK, none longer than what sets a pace
//! ([`longest_paced_rtt`]), and none of an ACK that the peer's timer released
//! ([`ack_delay`](super::ack_delay)). Segments that left more than once give no sample (Karn's
//! algorithm, RFC 6298, section 3).

use crate::config::{ConnConfig, RtoFloor};
use crate::policy::cc::longest_paced_rtt;
use crate::seq::SeqNum;
use crate::snd::measure::min_rtt::{self, MinRtt, Successors};
use crate::time::{Duration, Instant};

/// Longest sample that is believed: about 18 minutes, far above every permitted timeout.
const LONGEST_SAMPLE: u64 = min_rtt::LONGEST;
/// How long the pacer's estimate outlives the last departure.
const PACE_MEMORY: Duration = Duration::from_secs(10);
/// Most doublings that are remembered; the timeout is capped by `max_rto` long before.
const MAX_BACKOFF: u8 = 32;

/// The estimators of one connection.
#[derive(Debug)]
pub(crate) struct Rtt {
    /// SRTT in ns, times 8; 0 before the first sample.
    srtt: u64,
    /// RTTVAR in ns, times 4.
    rttvar: u64,
    /// Smoothed RTT of the newest covered segments in ns, times 8; 0 before the first sample.
    pace: u64,
    /// Smallest of the newest covered segments' samples of late.
    min: MinRtt,
    /// The timeout in force, without back-off.
    rto: Duration,
    /// SND.NXT at the last sample of `srtt`: the next is taken when it is acknowledged.
    next_sample: SeqNum,
    /// Doublings in force (RFC 6298, 5.5).
    backoff: u8,
    /// The next sample replaces `pace`.
    pace_is_old: bool,
}

impl Rtt {
    pub(crate) fn new(initial_rto: Duration, una: SeqNum) -> Self {
        Self {
            srtt: 0,
            rttvar: 0,
            pace: 0,
            min: MinRtt::default(),
            rto: initial_rto,
            next_sample: una,
            backoff: 0,
            pace_is_old: false,
        }
    }

    /// SRTT of RFC 6298. None before a sample.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Duration::from_nanos(self.srtt >> 3))
    }

    /// RTTVAR of RFC 6298. None before a sample.
    pub(crate) fn rttvar(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Duration::from_nanos(self.rttvar >> 2))
    }

    /// Smoothed RTT of the newest covered segments. None before a sample.
    pub(crate) fn srtt_pace(&self) -> Option<Duration> {
        (self.pace != 0).then(|| Duration::from_nanos(self.pace >> 3))
    }

    /// Smallest sample of the last five minutes. None before a sample.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.min.get()
    }

    /// The timeout without back-off.
    pub(crate) const fn rto(&self) -> Duration {
        self.rto
    }

    /// The timeout with back-off, at most `max_rto`.
    pub(crate) fn backed_off_rto(&self, config: &ConnConfig) -> Duration {
        if self.backoff == 0 {
            return self.rto;
        }
        self.rto.saturating_mul(1 << self.backoff).min(config.max_rto)
    }

    /// Doublings in force.
    pub(crate) fn backoff(&self) -> u32 {
        u32::from(self.backoff)
    }

    /// RFC 6298, 5.5.
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// RFC 6298, 5.7: if the SYN was retransmitted, the timeout for data starts at 3 s.
    pub(crate) fn after_syn_timeout(&mut self, config: &ConnConfig) {
        self.rto = Duration::from_secs(3).max(self.rto).min(config.max_rto);
        self.backoff = 0;
    }

    /// Takes the RTT of the handshake.
    pub(crate) fn handshake(
        &mut self,
        now: Instant,
        rtt: Duration,
        config: &ConnConfig,
        granularity: Duration,
    ) {
        self.on_newest(&mut Successors::default(), now, rtt, false);
        self.take(rtt, config, granularity);
    }

    /// The newest segment never retransmitted that an ACK covers had the round-trip time `rtt`.
    /// `held`: the peer may have held the ACK, which is no reason to believe that the path has
    /// become longer.
    pub(crate) fn on_newest(&mut self, successors: &mut Successors, now: Instant, rtt: Duration, held: bool) {
        let sample = clamp(rtt);
        let before = self.min.get();
        if !held || before.is_none_or(|min| sample <= min.as_nanos()) {
            self.min.on_sample(successors, now, Duration::from_nanos(sample));
        }
        // A stall that is over does not set the pace, neither as this sample nor as an earlier one.
        // It may have been so long that it is the smallest sample of late.
        let min = before.into_iter().chain(self.min.get()).min();
        let longest = longest_paced_rtt(min).as_nanos().min(LONGEST_SAMPLE);
        let sample = sample.min(longest);
        let pace = self.pace.min(longest << 3);
        let first = pace == 0 || core::mem::take(&mut self.pace_is_old);
        self.pace = if first { sample << 3 } else { pace - (pace >> 3) + sample };
    }

    /// Nothing was sent for `idle`: after ten seconds the pacer's estimate is used until a sample
    /// replaces it.
    pub(crate) fn on_idle(&mut self, idle: Duration) {
        self.pace_is_old |= idle > PACE_MEMORY;
    }

    /// The oldest segment never retransmitted that an ACK covers had the round-trip time `rtt`.
    /// Taken once per round trip, so that the gains of RFC 6298 fit.
    pub(crate) fn on_oldest(
        &mut self,
        rtt: Duration,
        una: SeqNum,
        nxt: SeqNum,
        config: &ConnConfig,
        granularity: Duration,
    ) {
        if self.srtt == 0 || self.backoff != 0 || una.gt(self.next_sample) {
            self.take(rtt, config, granularity);
            self.next_sample = nxt;
        }
    }

    /// RFC 4015, section 3.1: SRTT := max(SRTT before, sample), RTTVAR := max(RTTVAR before, sample
    /// / 2).
    pub(crate) fn adapt_to_spurious_timeout(
        &mut self,
        rtt: Duration,
        srtt: Duration,
        rttvar: Duration,
        config: &ConnConfig,
        granularity: Duration,
    ) {
        let sample = clamp(rtt);
        self.srtt = clamp(srtt).max(sample) << 3;
        self.rttvar = clamp(rttvar).max(sample / 2) << 2;
        self.update_rto(config, granularity);
    }

    /// RFC 6298, 2.2 and 2.3.
    pub(crate) fn take(&mut self, rtt: Duration, config: &ConnConfig, granularity: Duration) {
        let sample = clamp(rtt);
        if self.srtt == 0 {
            self.srtt = sample << 3;
            self.rttvar = sample << 1;
        } else {
            let error = (self.srtt >> 3).abs_diff(sample);
            self.rttvar = self.rttvar - (self.rttvar >> 2) + error;
            self.srtt = self.srtt - (self.srtt >> 3) + sample;
        }
        self.update_rto(config, granularity);
    }

    fn update_rto(&mut self, config: &ConnConfig, granularity: Duration) {
        let srtt = Duration::from_nanos(self.srtt >> 3);
        // RFC 6298, 2.3; the field holds 4 RTTVAR.
        let variation = Duration::from_nanos(self.rttvar).max(granularity);
        let rto = match config.rto_floor {
            // Linux, `__tcp_set_rto`. RFC 6298, 2.4, floors the sum with 1 s; a lower floor of the
            // sum does nothing on a path whose RTT exceeds it, and leaves no time for a delayed ACK
            // there.
            RtoFloor::Variance => srtt.saturating_add(variation.max(config.min_rto)),
            RtoFloor::Sum => srtt.saturating_add(variation).max(config.min_rto),
        };
        // RFC 6298, 2.5.
        self.rto = rto.min(config.max_rto);
        self.backoff = 0;
    }

    /// Keeps the mark within half the sequence space of `una`.
    pub(crate) fn forget_before(&mut self, una: SeqNum) {
        self.next_sample = self.next_sample.max(una);
    }
}

/// A sample within its bounds, at least 1 ns so that 0 can mean "none".
fn clamp(rtt: Duration) -> u64 {
    rtt.as_nanos().clamp(1, LONGEST_SAMPLE)
}

#[cfg(test)]
mod tests {
    use super::{Rtt, Successors};
    use crate::config::{ConnConfig, RtoFloor};
    use crate::seq::SeqNum;
    use crate::time::{Duration, Instant};

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn config() -> ConnConfig {
        ConnConfig { min_rto: ms(1), ..ConnConfig::default() }
    }

    /// RFC 6298, section 2, computed by hand for samples of 100, 200, 100 ms.
    #[test]
    fn follows_rfc_6298() {
        let (config, g) = (config(), ms(0));
        let mut rtt = Rtt::new(config.initial_rto, SeqNum(0));
        assert_eq!(rtt.rto(), ms(1000), "2.1");
        rtt.take(ms(100), &config, g);
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(ms(100)), Some(ms(50)), ms(300)), "2.2");
        rtt.take(ms(200), &config, g);
        // RTTVAR = 3/4 * 50 + 1/4 * 100 = 62.5; SRTT = 7/8 * 100 + 1/8 * 200 = 112.5
        assert_eq!(rtt.rttvar(), Some(Duration::from_micros(62_500)));
        assert_eq!(rtt.srtt(), Some(Duration::from_micros(112_500)));
        assert_eq!(rtt.rto(), Duration::from_micros(362_500), "2.3");
        rtt.take(ms(100), &config, g);
        // RTTVAR = 46.875 + 3.125 = 50; SRTT = 98.4375 + 12.5
        assert_eq!(rtt.rttvar(), Some(ms(50)));
        assert_eq!(rtt.srtt(), Some(Duration::from_nanos(110_937_500)));
    }

    #[test]
    fn granularity_and_bounds() {
        let config = ConnConfig { min_rto: ms(1), max_rto: ms(60_000), ..ConnConfig::default() };
        let mut rtt = Rtt::new(ms(1000), SeqNum(0));
        for _ in 0..200 {
            rtt.take(ms(10), &config, ms(4));
        }
        assert_eq!(rtt.rto(), ms(14), "RTO = SRTT + max(G, 4 RTTVAR)");
        let config = ConnConfig { min_rto: ms(200), rto_floor: RtoFloor::Sum, ..config };
        rtt.take(ms(10), &config, ms(4));
        assert_eq!(rtt.rto(), ms(200), "2.4");
        rtt.take(Duration::MAX, &config, ms(4));
        assert_eq!(rtt.rto(), ms(60_000), "2.5");
    }

    #[test]
    fn backs_off_until_a_sample_comes() {
        let config = ConnConfig { max_rto: ms(2_000), ..config() };
        let mut rtt = Rtt::new(ms(1000), SeqNum(0));
        rtt.take(ms(100), &config, ms(0));
        let mut timeouts = std::vec::Vec::new();
        for _ in 0..5 {
            timeouts.push(rtt.backed_off_rto(&config));
            rtt.back_off();
        }
        assert_eq!(timeouts, [ms(300), ms(600), ms(1200), ms(2000), ms(2000)]);
        for _ in 0..300 {
            rtt.back_off();
        }
        assert_eq!(rtt.backed_off_rto(&config), ms(2000));
        rtt.on_oldest(ms(100), SeqNum(0), SeqNum(10), &config, ms(0));
        assert_eq!(rtt.backed_off_rto(&config), rtt.rto(), "a sample ends the back-off");
    }

    #[test]
    fn one_sample_of_srtt_per_round_trip() {
        let config = config();
        let mut rtt = Rtt::new(ms(1000), SeqNum(0));
        rtt.on_oldest(ms(100), SeqNum(1), SeqNum(1000), &config, ms(0));
        rtt.on_oldest(ms(500), SeqNum(1000), SeqNum(2000), &config, ms(0));
        assert_eq!(rtt.srtt(), Some(ms(100)), "same round trip");
        rtt.on_oldest(ms(500), SeqNum(1001), SeqNum(2000), &config, ms(0));
        assert_eq!(rtt.srtt(), Some(ms(150)));
    }

    /// A stall of minutes is over in the pacer's estimate as soon as it is over on the path, even
    /// if it gave the first sample of all.
    #[test]
    fn a_sample_of_minutes_does_not_set_the_pace() {
        let (mut next, now) = (Successors::default(), Instant::from_secs(1));
        let mut rtt = Rtt::new(ms(1000), SeqNum(0));
        rtt.on_newest(&mut next, now, ms(100), false);
        rtt.on_newest(&mut next, now, ms(600_000), false);
        // 7/8 * 100 ms + 1/8 * 1 s.
        assert_eq!(rtt.srtt_pace(), Some(Duration::from_micros(212_500)));
        let mut rtt = Rtt::new(ms(1000), SeqNum(0));
        rtt.on_newest(&mut next, now, ms(600_000), false);
        assert_eq!(rtt.srtt_pace(), Some(ms(60_000)), "nothing else is known");
        rtt.on_newest(&mut next, now, ms(100), false);
        assert!(rtt.srtt_pace().unwrap() <= ms(1_000), "{:?}", rtt.srtt_pace());
    }

    #[test]
    fn the_first_sample_after_ten_seconds_replaces_the_pace() {
        let (mut next, now) = (Successors::default(), Instant::from_secs(1));
        for (idle, pace) in [(10_000, 110), (10_001, 180)] {
            let mut rtt = Rtt::new(ms(1000), SeqNum(0));
            rtt.on_newest(&mut next, now, ms(100), false);
            rtt.on_idle(ms(idle));
            assert_eq!(rtt.srtt_pace(), Some(ms(100)), "in use until then");
            rtt.on_newest(&mut next, now, ms(180), false);
            assert_eq!(rtt.srtt_pace(), Some(ms(pace)), "{idle} ms");
            rtt.on_newest(&mut next, now, ms(pace), false);
            assert_eq!(rtt.srtt_pace(), Some(ms(pace)), "the next is smoothed in");
        }
    }

    /// RFC 8985, section 6.2: RACK.min_RTT follows a path that has become longer, but not a peer
    /// that holds its ACKs.
    #[test]
    fn the_minimum_is_of_the_last_minutes() {
        let mut rtt = Rtt::new(ms(1000), SeqNum(0));
        let mut next = Successors::default();
        rtt.on_newest(&mut next, Instant::from_secs(1), ms(20), false);
        for second in 2..400 {
            rtt.on_newest(&mut next, Instant::from_secs(second), ms(60), true);
        }
        assert_eq!(rtt.min_rtt(), Some(ms(20)), "held ACKs");
        rtt.on_newest(&mut next, Instant::from_secs(400), ms(60), false);
        assert_eq!(rtt.min_rtt(), Some(ms(60)));
    }

    /// Linux: the variance is floored, so that a peer has `min_rto` beyond a round trip. RFC 6298,
    /// 2.4: the sum is.
    #[test]
    fn a_steady_long_path_leaves_the_floor_beyond_its_round_trip() {
        for (rto_floor, rto) in [(RtoFloor::Variance, 500), (RtoFloor::Sum, 300)] {
            let config = ConnConfig { rto_floor, ..ConnConfig::default() };
            let mut rtt = Rtt::new(ms(1000), SeqNum(0));
            for _ in 0..200 {
                rtt.take(ms(300), &config, ms(0));
            }
            assert_eq!(rtt.rto().as_millis(), rto, "{rto_floor:?}");
        }
        // A variance above the floor counts in full.
        let config = ConnConfig::default();
        let mut rtt = Rtt::new(ms(1000), SeqNum(0));
        rtt.take(ms(300), &config, ms(0));
        assert_eq!(rtt.rto(), ms(300 + 4 * 150));
    }

    #[test]
    fn pacing_takes_every_sample_and_keeps_the_minimum() {
        let mut rtt = Rtt::new(ms(1000), SeqNum(0));
        assert_eq!((rtt.srtt_pace(), rtt.min_rtt()), (None, None));
        let (mut next, now) = (Successors::default(), Instant::from_secs(1));
        rtt.on_newest(&mut next, now, ms(80), false);
        rtt.on_newest(&mut next, now, ms(160), false);
        assert_eq!(rtt.srtt_pace(), Some(ms(90)));
        assert_eq!(rtt.min_rtt(), Some(ms(80)));
        assert_eq!(rtt.srtt(), None, "the timeout's estimator is another");
    }
}
