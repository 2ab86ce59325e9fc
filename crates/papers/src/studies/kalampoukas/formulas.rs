//! The closed forms for two-way traffic over an asymmetric line, by the numbers that the paper
//! gives them, and the forms that stand where a printed one does not agree with its own analysis.
//!
//! ```text
//!   node i ══ slow: data of i, ACKs for j's data ══► node j         alpha = t_i^d / t_j^d
//!          ◄═ fast: data of j, ACKs for i's data ══                 beta  = t_i^d / t_i^a
//! ```
//!
//! Efficiencies are shares of a direction's rate that its data packets use: `F_i` on the slow
//! direction, `F_j` on the fast one. Every bit that the slow direction carries is data of i or an
//! ACK, and each packet of j costs one ACK, so that a slow direction which is never idle has
//! `F_i + F_j * alpha / beta = 1` ([`Line::balance`]), whatever the scheduler.

/// A line with one connection in each direction. Times in seconds, sizes in bytes, rates in bits
/// per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Rate from i to j.
    pub slow: f64,
    /// Rate from j to i.
    pub fast: f64,
    /// Data packets of i.
    pub data_i: f64,
    /// Data packets of j.
    pub data_j: f64,
    /// An ACK.
    pub ack: f64,
    /// Window of i.
    pub window_i: f64,
    /// Window of j.
    pub window_j: f64,
}

/// `F_i` and `F_j`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// `F_i`.
    pub slow: f64,
    /// `F_j`.
    pub fast: f64,
}

impl Efficiency {
    /// `F_i`, then `F_j`.
    #[must_use]
    pub const fn new(slow: f64, fast: f64) -> Self {
        Self { slow, fast }
    }
}

/// ACKs that go before the next data packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckBurst {
    /// (4.2) Those that come while a data packet leaves.
    pub during: f64,
    /// (4.3) Those and the ones that come while ACKs leave.
    pub all: f64,
    /// (4.4) Their time, s.
    pub time: f64,
}

impl Line {
    /// The line of the paper's simulations: 100 kbit/s one way, 5 Mbit/s the other, windows of
    /// 65,536 bytes.
    #[must_use]
    pub const fn of_paper(data_i: u32, data_j: u32, ack: u32) -> Self {
        Self {
            slow: 100e3,
            fast: 5e6,
            data_i: data_i as f64,
            data_j: data_j as f64,
            ack: ack as f64,
            window_i: 65_536.0,
            window_j: 65_536.0,
        }
    }

    /// `t_i^d`: a data packet of i on the slow direction.
    #[must_use]
    pub const fn data_time_slow(&self) -> f64 {
        self.data_i * 8.0 / self.slow
    }

    /// `t_j^d`: a data packet of j on the fast direction.
    #[must_use]
    pub const fn data_time_fast(&self) -> f64 {
        self.data_j * 8.0 / self.fast
    }

    /// `t_i^a`: an ACK on the slow direction.
    #[must_use]
    pub const fn ack_time(&self) -> f64 {
        self.ack * 8.0 / self.slow
    }

    /// `alpha`.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.data_time_slow() / self.data_time_fast()
    }

    /// `beta`.
    #[must_use]
    pub const fn beta(&self) -> f64 {
        self.data_time_slow() / self.ack_time()
    }

    /// `n_i`: whole data packets in the window of i.
    #[must_use]
    pub fn packets_i(&self) -> f64 {
        (self.window_i / self.data_i).floor()
    }

    /// `n_j`: whole data packets in the window of j.
    #[must_use]
    pub fn packets_j(&self) -> f64 {
        (self.window_j / self.data_j).floor()
    }

    /// `F_i + F_j * alpha / beta`: 1 if the slow direction is never idle.
    #[must_use]
    pub fn balance(&self, of: Efficiency) -> f64 {
        of.slow + of.fast * self.alpha() / self.beta()
    }

    /// (2.1) A window's worth of time in both directions exceeds the round trip's propagation,
    /// `delay`: ACKs are compressed.
    #[must_use]
    pub fn compresses(&self, delay: f64) -> bool {
        let (a, c) = self.window_times();
        a + c > delay
    }

    /// `W / rho` of both directions.
    fn window_times(&self) -> (f64, f64) {
        (self.packets_i() * self.data_time_slow(), self.packets_j() * self.data_time_fast())
    }

    /// (2.2), theorem 1: one queue for data and ACKs, both sources greedy, `delay` = D_ij + D_ji in
    /// seconds. It takes ACKs to cost nothing.
    #[must_use]
    pub fn fifo(&self, delay: f64) -> Efficiency {
        let (a, c) = self.window_times();
        let one = |own: f64, other: f64| {
            if own > other + delay {
                1.0
            } else if own < other - delay {
                own / other
            } else {
                2.0 * own / (own + other + delay)
            }
        };
        Efficiency::new(one(a, c), one(c, a))
    }

    /// (2.3) The largest queue of the slow direction, in packets of i.
    #[must_use]
    pub fn fifo_queue(&self, delay: f64) -> f64 {
        let (a, c) = self.window_times();
        let time = if a > c + delay {
            a - delay
        } else if a < c - delay {
            a
        } else {
            a + c - delay
        };
        time / self.data_time_slow()
    }

    /// An ACK takes less time on the slow direction than a data packet on the fast one: ACKs alone
    /// cannot fill it.
    fn acks_fit(&self) -> bool {
        self.alpha() < self.beta()
    }

    /// (4.1) and (4.5) ACKs first.
    #[must_use]
    pub fn priority_printed(&self) -> Efficiency {
        let (alpha, beta, window) = (self.alpha(), self.beta(), self.packets_j());
        if !self.acks_fit() {
            return Efficiency::new(0.0, beta / alpha);
        }
        let fast = window * (beta / alpha) / (beta - alpha + window);
        Efficiency::new(1.0 - alpha / beta, fast.min(1.0))
    }

    /// (4.1) is what is left to data if the fast direction is full; if the window of j does not
    /// fill it, data has the rest of the ACKs' time, too: `F_i = 1 - F_j * alpha / beta`.
    #[must_use]
    pub fn priority(&self) -> Efficiency {
        let printed = self.priority_printed();
        if !self.acks_fit() {
            return printed;
        }
        Efficiency { slow: 1.0 - printed.fast * self.alpha() / self.beta(), ..printed }
    }

    /// (4.2) to (4.4) ACKs first: how many leave between two data packets. `None` if they never
    /// end.
    #[must_use]
    pub fn priority_burst(&self) -> Option<AckBurst> {
        if !self.acks_fit() {
            return None;
        }
        let during = self.packets_j().min(self.alpha());
        let all = during / (1.0 - self.alpha() / self.beta());
        Some(AckBurst { during, all, time: all * self.ack_time() })
    }

    /// (5.12) and (5.13), which are (5.5) and (5.6) if `threshold` is 1: at most so many data
    /// packets of i are with IP.
    #[must_use]
    pub fn backpressure_printed(&self, threshold: u32) -> Efficiency {
        let (alpha, beta, window, b) = (self.alpha(), self.beta(), self.packets_j(), f64::from(threshold));
        if self.acks_fit() {
            let fast = window / b * (1.0 / alpha - 1.0 / beta);
            Efficiency::new(1.0 - alpha / beta, fast.min(1.0))
        } else {
            let fast = window * beta / ((window + beta * b) * alpha);
            Efficiency::new(beta / (window + beta), fast.min(1.0))
        }
    }

    /// ACKs that stand before the next `threshold` data packets once the queue has settled: what
    /// (5.3) gives for a window without end, but no more than the window of j.
    #[must_use]
    pub fn backpressure_acks(&self, threshold: u32) -> f64 {
        let (alpha, beta) = (self.alpha(), self.beta());
        if !self.acks_fit() {
            return self.packets_j();
        }
        self.packets_j().min(f64::from(threshold) * alpha * beta / (beta - alpha))
    }

    /// The same with the right test for the case: not whether ACKs fit, but whether the window of j
    /// ends their accumulation. A cycle is `threshold` data packets and the ACKs of
    /// [`Self::backpressure_acks`].
    #[must_use]
    pub fn backpressure(&self, threshold: u32) -> Efficiency {
        let acks = self.backpressure_acks(threshold);
        let data = f64::from(threshold) * self.data_time_slow();
        let cycle = acks * self.ack_time() + data;
        Efficiency::new(data / cycle, (acks * self.data_time_fast() / cycle).min(1.0))
    }

    /// (5.1) The time that ACKs before data packet `number` take, from 1 on, with an unlimited
    /// window: (5.2) in closed form.
    #[must_use]
    pub fn accumulation(&self, number: u32) -> f64 {
        (0..number)
            .fold(0.0, |queue, _| (self.alpha() / self.beta()) * queue + self.alpha() * self.ack_time())
    }

    /// (5.3) and (5.4) The same after many data packets, no more than a window's ACKs.
    #[must_use]
    pub fn accumulation_limit(&self) -> f64 {
        let window = self.packets_j() * self.ack_time();
        if !self.acks_fit() {
            return window;
        }
        (self.data_time_slow() * self.alpha() / (self.beta() - self.alpha())).min(window)
    }

    /// (5.14) and (5.15) Backpressure with a propagation of `delay` = D_ij + D_ji, as printed.
    #[must_use]
    pub fn backpressure_delayed_printed(&self, delay: f64) -> Efficiency {
        let (alpha, beta, window) = (self.alpha(), self.beta(), self.packets_j());
        let pipe = (delay + self.data_time_slow()) / self.data_time_fast().max(self.ack_time());
        let fits = (beta / alpha).min(1.0);
        if self.acks_fit() && window > pipe {
            let fast = (window - pipe) * (1.0 / alpha - 1.0 / beta);
            Efficiency::new(1.0 - alpha / beta, fast.min(1.0))
        } else {
            Efficiency::new(1.0 - window * alpha / (pipe * beta) * fits, window / pipe * fits)
        }
    }

    /// (6.1) ACKs per data packet if data gets the share `f` of the slow direction.
    #[must_use]
    pub fn allocation_ratio(&self, f: f64) -> f64 {
        (1.0 - f) * self.beta() / f
    }

    /// (6.2) The longest that a data packet waits for ACKs.
    #[must_use]
    pub fn allocation_wait(&self, f: f64) -> f64 {
        self.packets_j().min(self.allocation_ratio(f)) * self.ack_time()
    }

    /// (6.3) and (6.5) Data gets at least the share `f`.
    #[must_use]
    pub fn allocation_printed(&self, f: f64) -> Efficiency {
        let (alpha, beta, window) = (self.alpha(), self.beta(), self.packets_j());
        let by_window = beta * window / (alpha * (window + beta));
        let by_share = (1.0 - f) * beta / alpha;
        Efficiency::new((beta / (window + beta)).max(f), by_window.min(by_share).min(1.0))
    }

    /// ACKs go on coming while ACKs are sent, so that the bound by the window is that of
    /// [`Self::priority`]: data has its share, or what ACKs that go first would leave it, whichever
    /// is more.
    #[must_use]
    pub fn allocation(&self, f: f64) -> Efficiency {
        let first = self.priority();
        let by_share = (1.0 - f) * self.beta() / self.alpha();
        Efficiency::new(f.max(first.slow), first.fast.min(by_share))
    }

    /// The share at which both directions are used equally: `f = (1 - f) * beta / alpha`.
    #[must_use]
    pub fn equal_share(&self) -> f64 {
        self.beta() / (self.alpha() + self.beta())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures 4.2, 4.3 and 4.4; 5.4; 5.6.
    const ACK_15: Line = Line::of_paper(1500, 1500, 15);
    const ACK_28: Line = Line::of_paper(1500, 1500, 28);
    const ACK_40: Line = Line::of_paper(1500, 1500, 40);
    const SMALL_I: Line = Line::of_paper(256, 1500, 28);
    const SMALL_BOTH: Line = Line::of_paper(256, 512, 28);

    fn near(of: Efficiency, slow: f64, fast: f64) {
        assert!(
            (of.slow - slow).abs() < 6e-4 && (of.fast - fast).abs() < 6e-4,
            "{of:?}, not {slow} / {fast}"
        );
    }

    #[test]
    fn the_line_has_the_papers_ratios() {
        for (line, alpha, beta, window) in [
            (ACK_15, 50.0, 100.0, 43.0),
            (ACK_28, 50.0, 53.57, 43.0),
            (ACK_40, 50.0, 37.5, 43.0),
            (SMALL_I, 8.533, 9.143, 43.0),
            (SMALL_BOTH, 25.0, 9.143, 128.0),
        ] {
            assert!((line.alpha() - alpha).abs() < 1e-3, "{line:?}");
            assert!((line.beta() - beta).abs() < 2e-3, "{line:?}");
            assert_eq!(line.packets_j(), window);
        }
        assert!((ACK_28.packets_j() * ACK_28.data_time_fast() - 0.1032).abs() < 1e-9);
        assert!((ACK_28.packets_i() * ACK_28.data_time_slow() - 5.16).abs() < 1e-9);
    }

    #[test]
    fn one_queue_gives_the_fast_direction_two_percent() {
        near(ACK_28.fifo(0.0), 1.0, 0.020);
        assert!(ACK_28.compresses(0.0) && !ACK_28.compresses(5.3));
        // A window of i less what propagates.
        assert_eq!(ACK_28.fifo_queue(0.0), 43.0);
        assert!((ACK_28.fifo_queue(1.2) - 33.0).abs() < 1e-9);
        // Equal windows and rates: each has half of what the round trip allows.
        let equal = Line { fast: 100e3, ..ACK_28 };
        near(equal.fifo(0.0), 1.0, 1.0);
        near(equal.fifo(10.32), 0.5, 0.5);
        assert!((equal.fifo_queue(5.16) - 43.0).abs() < 1e-9);
        // The shorter window gets its share of the longer one's time.
        let short = Line { window_j: 15_000.0, ..equal };
        near(short.fifo(0.0), 1.0, 10.0 / 43.0);
        let long = Line { window_i: 15_000.0, ..equal };
        assert_eq!(long.fifo_queue(0.0), 10.0);
    }

    #[test]
    fn acks_first() {
        near(ACK_15.priority_printed(), 0.50, 0.925);
        near(ACK_15.priority(), 0.538, 0.925);
        near(ACK_28.priority_printed(), 0.067, 0.989);
        near(ACK_28.priority(), 0.077, 0.989);
        near(ACK_40.priority(), 0.0, 0.75);
        let burst = ACK_15.priority_burst().unwrap();
        assert_eq!((burst.during, burst.all), (43.0, 86.0));
        assert!((burst.time - 86.0 * 0.0012).abs() < 1e-12);
        assert_eq!(ACK_40.priority_burst(), None);
    }

    #[test]
    fn the_bound_of_4_1_is_met_where_the_window_fills_the_fast_direction() {
        let wide = Line { window_j: 150_000.0, ..ACK_15 };
        near(wide.priority(), 0.5, 1.0);
        assert_eq!(wide.priority(), wide.priority_printed());
    }

    #[test]
    fn backpressure_as_printed_and_as_it_is() {
        near(ACK_28.backpressure_printed(1), 0.0667, 0.0573);
        near(ACK_28.backpressure(1), 0.555, 0.477);
        near(SMALL_I.backpressure(1), 0.175, 0.884);
        near(SMALL_BOTH.backpressure(1), 0.067, 0.341);
        // ACKs do not fit here: the printed branch is the right one.
        near(SMALL_BOTH.backpressure_printed(1), 0.067, 0.341);
        for (b, slow, fast) in [
            (2, 0.714, 0.307),
            (3, 0.789, 0.226),
            (4, 0.833, 0.179),
            (8, 0.909, 0.098),
            (16, 0.952, 0.051),
            (43, 0.982, 0.020),
        ] {
            near(ACK_28.backpressure(b), slow, fast);
        }
    }

    #[test]
    fn acks_accumulate_to_their_limit() {
        // (5.2) is the recurrence (5.1), summed up.
        let line = ACK_15;
        let ratio = line.alpha() / line.beta();
        let sum: f64 = (1..=7).map(|power| ratio.powi(power)).sum();
        assert!((line.accumulation(7) - line.data_time_slow() * sum).abs() < 1e-12);
        let free = Line { window_j: 1e9, ..line };
        assert!((free.accumulation(200) - free.accumulation_limit()).abs() < 1e-9);
        assert!((line.accumulation_limit() - 43.0 * line.ack_time()).abs() < 1e-12);
        assert!((free.backpressure_acks(1) * free.ack_time() - free.accumulation_limit()).abs() < 1e-9);
    }

    #[test]
    fn backpressure_over_a_distance_does_not_begin_where_it_should() {
        near(ACK_28.backpressure_delayed_printed(0.0), 0.197, 0.860);
        near(ACK_28.backpressure_delayed_printed(0.2), 0.699, 0.3225);
        let wrong = SMALL_BOTH.backpressure_delayed_printed(0.0);
        assert!((wrong.slow + 13.0).abs() < 1e-9 && (wrong.fast - 5.12).abs() < 1e-9, "{wrong:?}");
    }

    #[test]
    fn allocation_as_printed_and_as_it_is() {
        near(ACK_28.allocation_printed(0.5), 0.555, 0.477);
        near(ACK_28.allocation(0.5), 0.500, 0.536);
        near(SMALL_I.allocation(0.5), 0.500, 0.536);
        near(SMALL_BOTH.allocation(0.5), 0.500, 0.183);
        near(SMALL_I.allocation(0.18), 0.180, 0.8786);
        near(SMALL_I.allocation(0.8), 0.800, 0.214);
        near(ACK_15.allocation(0.3), 0.538, 0.925);
        assert!((ACK_28.allocation_ratio(0.5) - ACK_28.beta()).abs() < 1e-12);
        assert!((ACK_28.allocation_wait(0.5) - 43.0 * 0.00224).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_lost_or_gained_on_the_slow_direction() {
        for line in [ACK_15, ACK_28, SMALL_I, SMALL_BOTH] {
            let equal = line.equal_share();
            let all = [line.priority(), line.backpressure(1), line.backpressure(5), line.allocation(equal)];
            for of in all {
                assert!((line.balance(of) - 1.0).abs() < 1e-9, "{line:?}: {of:?}");
            }
            let of = line.allocation(equal);
            // If the windows allow it, the equal share is the same of both directions.
            if line.priority().slow < equal {
                assert!((of.slow - of.fast).abs() < 1e-9, "{of:?}");
            }
        }
        assert!((ACK_40.balance(ACK_40.priority()) - 1.0).abs() < 1e-12);
    }
}
