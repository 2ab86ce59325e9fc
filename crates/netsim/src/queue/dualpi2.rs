//! DualPI2 (RFC 9332, appendix A): a shallow queue for L4S traffic beside one for everything else,
//! coupled so that flows of both get the same rate although one has no queueing delay.

use super::dual::TwoQueues;
use super::{Limit, Queue, QueueCx};
use crate::packet::{EcnField, Packet};
use ackline_sched::aqm::{Coupling, MTU, PiController, PiParams, Ramp, Turns, Verdict, Which};
use ackline_tcp_core::{Duration, Instant};

/// Settings of [`DualPi2`]. Defaults are RFC 9332's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Params {
    /// Size of both queues together.
    pub limit: Limit,
    /// The controller of the coupled probability.
    pub pi: PiParams,
    /// How much more often L4S traffic is marked than the square root of classic traffic's
    /// probability (2).
    pub coupling: f64,
    /// The L queue's own marking.
    pub ramp: Ramp,
    /// How turns are shared.
    pub turns: Turns,
}

impl Default for DualPi2Params {
    fn default() -> Self {
        Self {
            limit: Limit::Time(Duration::from_millis(250)),
            pi: PiParams::default(),
            coupling: 2.0,
            ramp: Ramp::default(),
            turns: Turns::default(),
        }
    }
}

/// The two queues, their coupling, and the controller.
#[derive(Debug)]
pub struct DualPi2 {
    queues: TwoQueues,
    ramp: Ramp,
    pi: PiController,
    coupling: Coupling,
}

impl DualPi2 {
    /// Empty queues.
    #[must_use]
    pub fn new(params: DualPi2Params) -> Self {
        Self {
            queues: TwoQueues::new(params.limit, params.turns),
            ramp: params.ramp,
            pi: PiController::new(params.pi),
            coupling: Coupling::new(params.coupling, params.pi.arithmetic),
        }
    }

    fn catch_up(&mut self, now: Instant) {
        let Self { queues, pi, .. } = self;
        pi.catch_up(now, |at| {
            let [l, c] = queues.delays(at);
            l.max(c)
        });
    }

    /// Figure 7, for a packet that has been taken out of L, which held `packets` with it.
    fn l4s(&mut self, cx: &mut QueueCx<'_>, sojourn: Duration, packets: usize, prob: f64) -> Verdict {
        let native = self.ramp.probability(sojourn, packets);
        self.coupling.l4s(|prob| cx.rng.chance(prob), prob, native)
    }

    /// The same for C.
    fn classic(&mut self, cx: &mut QueueCx<'_>, ecn: EcnField, prob: f64) -> Verdict {
        self.coupling.classic(|prob| cx.rng.chance(prob), prob, ecn != EcnField::NotEct)
    }
}

impl Queue for DualPi2 {
    fn name(&self) -> &'static str {
        "dualpi2"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        self.catch_up(cx.now);
        self.queues.push(cx, packet);
    }

    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        self.catch_up(cx.now);
        loop {
            let (packets, small) = (self.queues.l4s_packets(), self.queues.bytes() < 2 * MTU);
            let (which, packet) = self.queues.pop(cx)?;
            // Appendix A.1: a queue of less than two packets is none to control.
            let prob = if small { 0.0 } else { self.pi.prob() };
            let verdict = match which {
                Which::L => self.l4s(cx, cx.now.since(packet.queued_at), packets, prob),
                Which::C => self.classic(cx, packet.ecn(), prob),
            };
            if let Some(packet) = cx.carry_out(verdict, packet) {
                return Some(packet);
            }
        }
    }

    fn packets(&self) -> usize {
        self.queues.packets()
    }

    fn bytes(&self) -> u64 {
        self.queues.bytes()
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let prob = self.pi.prob();
        report("p", prob);
        report("p_c", prob * prob);
        report("p_cl", self.coupling.p_cl(prob));
        self.queues.report(report);
    }
}

#[cfg(test)]
mod tests {
    use super::super::DropReason;
    use super::super::bench::Bench;
    use super::*;
    use ackline_sched::aqm::Arithmetic;

    fn bench(params: DualPi2Params) -> Bench<DualPi2> {
        Bench::new(DualPi2::new(params), 8_000_000, 5)
    }

    /// Packets `queue/codepoint/sojourn in us/packets of L` with a constant p': `.` passes, `m` is
    /// marked, `d` dropped.
    fn departures(prob: f64, packets: &str) -> String {
        let mut bench = bench(DualPi2Params::default());
        let one = |packet: &str| {
            let parts: Vec<&str> = packet.split('/').collect();
            let number = |place: usize| parts[place].parse::<u64>().expect("a number");
            let verdict = bench.with(|queue, cx| match parts[0] {
                "L" => queue.l4s(cx, Duration::from_micros(number(2)), number(3) as usize, prob),
                _ if parts[1] == "not" => queue.classic(cx, EcnField::NotEct, prob),
                _ => queue.classic(cx, EcnField::Ect0, prob),
            });
            match verdict {
                Verdict::Pass => '.',
                Verdict::Mark => 'm',
                Verdict::Drop => 'd',
            }
        };
        packets.split(' ').map(one).collect()
    }

    #[test]
    fn marks_and_drops_as_the_rfc_says() {
        let both = "L/ect1/500/3 L/ect1/500/3 L/ect1/500/3 C/not/0/0 C/ect0/0/0 L/ect1/1000/3 L/ect1/1300/1 \
                    L/ect1/1300/2 C/not/0/0 C/ect0/0/0";
        assert_eq!(departures(0.2, both), "..m...mm..");
        let overload = "L/ect1/0/5 L/ect1/0/5 L/ect1/0/5 L/ect1/0/5 L/ect1/0/5 L/ect1/0/5 C/ect0/0/0 \
                        C/ect0/0/0 C/ect0/0/0 C/ect0/0/0 C/ect0/0/0";
        assert_eq!(departures(0.5, overload), ".mmmdm....d");
        let classic = "C/not/0/0 C/ect0/0/0 C/not/0/0 C/ect0/0/0 C/not/0/0 C/ect0/0/0 C/ect0/0/0 C/not/0/0 \
                       C/ect0/0/0 C/ect0/0/0";
        assert_eq!(departures(0.45, classic), "....d....m");
    }

    /// The queues in which packets of these sizes leave.
    fn order(l4s: &[usize], classic: &[usize]) -> String {
        let mut bench = bench(DualPi2Params { limit: Limit::Unlimited, ..DualPi2Params::default() });
        l4s.iter().for_each(|len| bench.arrive_with_ecn(*len, 1));
        classic.iter().for_each(|len| bench.arrive_with_ecn(*len, 0));
        std::iter::from_fn(|| bench.leave()).map(|packet| if packet.is_l4s() { 'L' } else { 'C' }).collect()
    }

    #[test]
    fn shares_turns_by_weight() {
        assert_eq!(order(&[1_514; 20], &[1_514; 4]), "LLLLLLLLLCLLLLLLLLLCLLCC");
        assert_eq!(order(&[100, 1_514, 1_514], &[1_514, 1_514]), "LLLCC");
    }

    #[test]
    fn a_shifted_fifo_lets_l4s_go_first_for_a_while() {
        let turns = Turns::Shifted(Duration::from_millis(50));
        let mut bench = bench(DualPi2Params { turns, ..DualPi2Params::default() });
        bench.arrive_with_ecn(1_000, 0);
        bench.now += Duration::from_millis(50);
        bench.arrive_with_ecn(1_000, 1);
        assert!(bench.leave().is_some_and(|packet| packet.is_l4s()), "it counts as 50 ms older");
        bench.now += Duration::from_millis(1);
        bench.arrive_with_ecn(1_000, 1);
        assert!(bench.leave().is_some_and(|packet| !packet.is_l4s()), "but not as 51 ms");
    }

    #[test]
    fn both_queues_share_a_limit_with_room_for_a_full_packet() {
        // 250 ms at 8 Mbit/s are 250,000 bytes.
        let mut bench = bench(DualPi2Params::default());
        (0..300).for_each(|number| bench.arrive_with_ecn(1_000, number as u8 % 2));
        assert_eq!(bench.queue.bytes(), 249_000);
        assert!(bench.dropped.iter().all(|(_, reason)| *reason == DropReason::Overflow));
    }

    /// Packets of 1,000 bytes through 8 Mbit/s, 1 ms each: so many of L4S and of classic traffic
    /// arrive in each millisecond. Returns the delays in L and C.
    fn load(bench: &mut Bench<DualPi2>, millis: u64, l4s: f64, classic: f64) -> [Vec<Duration>; 2] {
        let mut delays = [vec![], vec![]];
        let mut owed = [0.0; 2];
        for _ in 0..millis {
            bench.now += Duration::from_millis(1);
            for (owed, (load, ecn)) in owed.iter_mut().zip([(l4s, 1), (classic, 0)]) {
                *owed += load;
                while *owed >= 1.0 {
                    bench.arrive_with_ecn(1_000, ecn);
                    *owed -= 1.0;
                }
            }
            if let Some(packet) = bench.leave() {
                delays[usize::from(!packet.is_l4s())].push(bench.now.since(packet.queued_at));
            }
        }
        delays
    }

    #[test]
    fn classic_traffic_survives_l4s_traffic_that_does_not_respond() {
        for arithmetic in [Arithmetic::Real, Arithmetic::Linux] {
            let mut bench =
                bench(DualPi2Params { pi: PiParams::linux(arithmetic), ..DualPi2Params::default() });
            load(&mut bench, 10_000, 1.2, 0.5);
            let [_, classic] = load(&mut bench, 20_000, 1.2, 0.5);
            assert!(classic.len() >= 2_000, "{arithmetic:?}, seed 5: {} packets", classic.len());
            let mean = classic.iter().map(|delay| delay.as_secs_f64()).sum::<f64>() / classic.len() as f64;
            assert!(mean < 0.045, "{arithmetic:?}, seed 5: {mean} s");
        }
    }

    #[test]
    fn light_traffic_is_neither_marked_nor_dropped() {
        let mut bench = bench(DualPi2Params::default());
        load(&mut bench, 10_000, 0.5, 0.45);
        assert_eq!((bench.marked, bench.dropped.len()), (0, 0));
    }
}
