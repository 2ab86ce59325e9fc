//! Detection of a classic queue (RFC 9331, section 4.3, requirement 3), by TCP Prague's heuristic
//! of version 2: a queue that fills before it marks shows in a round trip above the smallest one,
//! and in its variation.
//!
//! Once per round the score moves by how both compare with what L4S queues have. It raises false
//! alarms at low rates and long round trips, so by default it only reports. It is not part of the
//! window's arithmetic, and so calculates with real numbers.

use ackline_tcp_core::Duration;

/// Mean deviation of the round trip that speaks neither for nor against, in microseconds.
const DEVIATION: f64 = 750.0;
/// Queueing delay up to which nothing speaks for a classic queue, in microseconds.
const QUEUE: f64 = 2_000.0;
/// The score's limit, and where a classic queue is assumed.
const MOST: f64 = 17.0;
const ASSUMED: f64 = 8.0;
/// The part of alpha that is kept per unit of the score above that, of which one counts.
const PART: f64 = 0.625;
/// Largest exponent of the averages' weights.
const SLOWEST: u32 = 18;

/// The score of a queue, and the averages that it follows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detector {
    score: f64,
    /// Slow averages in microseconds; `None` before the first sample.
    averages: Option<Averages>,
    min_rtt: f64,
}

#[derive(Clone, Copy, Debug)]
struct Averages {
    srtt: f64,
    deviation: f64,
}

impl Detector {
    /// A round trip was measured. The window below which flows avoid congestion sets how slow the
    /// averages are: over several of its sawteeth.
    pub(super) fn sample(&mut self, rtt: Duration, min_rtt: Option<Duration>, ssthresh: u64, smss: u32) {
        let rtt = micros(rtt);
        self.min_rtt = min_rtt.map_or(rtt, micros);
        let segments = (ssthresh >> 16) / u64::from(smss.max(1));
        let log = segments.max(1).ilog2();
        let exponent = (log + log / 2 + 1).min(SLOWEST);
        let weight = libm::ldexp(1.0, -(exponent as i32));
        match &mut self.averages {
            None => self.averages = Some(Averages { srtt: rtt, deviation: 0.0 }),
            Some(averages) => {
                let error = rtt - averages.srtt;
                averages.srtt += error * weight;
                averages.deviation += (libm::fabs(error) - averages.deviation) * weight / 2.0;
            }
        }
    }

    /// A round has ended.
    pub(super) fn end_round(&mut self) {
        if let Some(Averages { srtt, deviation }) = self.averages {
            self.judge(deviation, (srtt - self.min_rtt).max(0.0));
        }
    }

    /// The score follows a mean deviation and a queueing delay in microseconds.
    fn judge(&mut self, deviation: f64, queue: f64) {
        let by_deviation = libm::log2(deviation.max(1.0) / DEVIATION) / 2.0;
        let by_queue = libm::log2((queue / QUEUE).max(1.0)) / 2.0;
        self.score = (self.score + by_deviation + by_queue).clamp(0.0, MOST);
    }

    /// The score: 0 for an L4S queue, above 8 for a classic one.
    #[must_use]
    pub const fn score(&self) -> f64 {
        self.score
    }

    /// The least share by which a mark is answered, in 2^-24.
    #[must_use]
    pub fn floor(&self) -> u64 {
        let part = PART * (self.score.min(ASSUMED + 1.0) - ASSUMED).max(0.0);
        (part * super::alpha::ONE as f64) as u64
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_follows_variation_and_delay() {
        for (score, rounds, expected) in [
            (
                8.0,
                &[(750.0, 0.0), (750.0, 2_000.0), (3_000.0, 8_000.0), (3_000.0, 8_000.0), (100.0, 0.0)][..],
                &[(8.0, 0.0), (8.0, 0.0), (10.0, 0.625), (12.0, 0.625), (10.546_555, 0.625)][..],
            ),
            (
                0.0,
                &[
                    (100.0, 0.0),
                    (6_000.0, 16_000.0),
                    (6_000.0, 16_000.0),
                    (6_000.0, 16_000.0),
                    (6_000.0, 16_000.0),
                    (6_000.0, 16_000.0),
                    (6_000.0, 16_000.0),
                ],
                &[
                    (0.0, 0.0),
                    (3.0, 0.0),
                    (6.0, 0.0),
                    (9.0, 0.625),
                    (12.0, 0.625),
                    (15.0, 0.625),
                    (17.0, 0.625),
                ],
            ),
        ] {
            let mut detector = Detector { score, ..Detector::default() };
            for ((deviation, queue), (score, floor)) in rounds.iter().zip(expected) {
                detector.judge(*deviation, *queue);
                assert!((detector.score() - score).abs() < 1e-6, "{}", detector.score());
                assert!((detector.floor() as f64 / 16_777_216.0 - floor).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_standing_queue_that_varies_is_found() {
        let mut detector = Detector::default();
        let min = Some(Duration::from_millis(20));
        for round in 0..40_u64 {
            for sample in 0..40 {
                // A sawtooth of 10 to 50 ms.
                let queue = 10 + (round * 40 + sample) % 41;
                detector.sample(Duration::from_millis(20 + queue), min, (40 * 1_448) << 16, 1_448);
            }
            detector.end_round();
        }
        assert!(detector.score() > 9.0, "{}", detector.score());
    }
}
