//! Changes of the path: its round trips move, stay there, and the sender's own queue does not
//! explain it.
//!
//! A path that has delivered at a rate takes no longer than flight over rate for any other flight
//! (Little's law), or than its shortest round trip. What is longer by a third and 5 ms is not the
//! sender's own queue. What is shorter by a quarter and 5 ms may be, if a queue stood in the
//! shortest round trip so far; but then the rate stays as it was.

use crate::story::PathChange;

/// Changes that are kept.
const LIMIT: usize = 16;
/// A change is one that stays: for so long, and so many of its round trips and samples.
const STAYS_NS: u64 = 1_000_000_000;
const STAYS_ROUNDS: u64 = 8;
const STAYS_SAMPLES: u32 = 16;
/// The smallest move.
const LEAST_NS: u64 = 5_000_000;
/// With less in flight an ACK may be a delayed one (RFC 9293, section 3.8.6.3).
const SEGMENTS: u64 = 4;

/// A path, as its round trips show it.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// When the first round trip ended.
    since_ns: u64,
    samples: u32,
    shortest_ns: u64,
    /// The least that was in flight when a round trip was about the shortest.
    flight: u64,
    /// The best rate, octets per ns.
    rate: f64,
}

impl Path {
    fn new(at: u64, rtt: u64, flight: u64) -> Self {
        Self { since_ns: at, samples: 1, shortest_ns: rtt, flight, rate: flight as f64 / rtt as f64 }
    }

    /// The same with more of its round trips.
    fn with(self, other: &Self) -> Self {
        let about = |shortest: u64| shortest + shortest / 8;
        let flight = match () {
            () if about(other.shortest_ns) < self.shortest_ns => other.flight,
            () if about(self.shortest_ns) < other.shortest_ns => self.flight,
            () => self.flight.min(other.flight),
        };
        Self {
            since_ns: self.since_ns,
            samples: self.samples.saturating_add(other.samples),
            shortest_ns: self.shortest_ns.min(other.shortest_ns),
            flight,
            rate: self.rate.max(other.rate),
        }
    }

    /// It has been like this for long enough.
    fn stays(&self, at: u64) -> bool {
        let long = STAYS_NS.max(self.shortest_ns.saturating_mul(STAYS_ROUNDS));
        self.samples >= STAYS_SAMPLES && at.saturating_sub(self.since_ns) >= long
    }

    /// Whether a round trip is longer than this path's can be, or shorter than they have been.
    fn differs(&self, rtt: u64, flight: u64) -> Option<Move> {
        let longest = self.shortest_ns.max((flight as f64 / self.rate) as u64);
        if rtt > longest.saturating_add((longest / 3).max(LEAST_NS)) {
            Some(Move::Longer)
        } else if rtt + (self.shortest_ns / 4).max(LEAST_NS) < self.shortest_ns {
            Some(Move::Shorter)
        } else {
            None
        }
    }

    /// It may be that a queue stood in every round trip: even when the least was in flight, that
    /// was what the path takes at its best rate.
    fn may_have_queued(&self) -> bool {
        self.flight as f64 >= self.shortest_ns as f64 * self.rate * 0.75
    }

    /// The sender's own queue has drained, and there is no more to it than that.
    fn is_drained_into(&self, other: &Self) -> bool {
        self.may_have_queued() && other.shortest_ns < self.shortest_ns && other.rate * 3.0 < self.rate * 4.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Longer,
    Shorter,
}

/// A path that may have taken another's place.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    direction: Move,
    path: Path,
    /// When the first packet was sent whose round trip differs.
    sent_ns: u64,
}

impl Candidate {
    fn add(&mut self, sample: &Path) {
        let since_ns = self.path.since_ns;
        if sample.since_ns.saturating_sub(since_ns) < sample.shortest_ns.saturating_mul(2) {
            // Packets that were under way took a part of each path.
            self.path = Path { since_ns, ..*sample };
        } else {
            self.path = self.path.with(sample);
        }
    }
}

/// Packets sent again, and packets that came out of order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    pub(super) again: u64,
    pub(super) reordered: u64,
}

/// Watches for changes of the path.
#[derive(Debug, Default)]
pub(super) struct PathWatch {
    known: Option<Path>,
    /// The path that is known, as it was lately. A move in small steps must not become known on its
    /// way.
    lately: Option<Path>,
    candidate: Option<Candidate>,
    /// Up to the last round trip of the path that is known.
    trouble: Trouble,
    /// What was sent before is not looked at: what is in flight counts lost octets.
    clean_from_ns: u64,
    changes: Vec<PathChange>,
    left_out: u64,
}

impl PathWatch {
    /// Something is being repaired at this time.
    pub(super) const fn repairs(&mut self, at: u64) {
        self.clean_from_ns = at;
    }

    /// A round trip ended of data that was sent with so much in flight, in segments of so many
    /// octets; `trouble` is all there was.
    pub(super) fn measured(&mut self, at: u64, rtt: u64, flight: u64, segment: u64, trouble: Trouble) {
        let sent_ns = at.saturating_sub(rtt);
        if rtt == 0 || flight < segment * SEGMENTS || sent_ns < self.clean_from_ns {
            return;
        }
        let sample = Path::new(at, rtt, flight);
        let Some(direction) = self.known.and_then(|known| known.differs(rtt, flight)) else {
            (self.candidate, self.trouble) = (None, trouble);
            let lately = self.lately.map_or(sample, |lately| lately.with(&sample));
            self.lately = Some(lately);
            if lately.stays(at) {
                self.known = Some(self.known.map_or(lately, |known| known.with(&lately)));
                self.lately = None;
            }
            return;
        };
        let candidate = match &mut self.candidate {
            Some(candidate) if candidate.direction == direction => {
                candidate.add(&sample);
                *candidate
            }
            other => *other.insert(Candidate { direction, path: sample, sent_ns }),
        };
        if candidate.path.stays(at) {
            self.change(&candidate, trouble);
        }
    }

    fn change(&mut self, to: &Candidate, trouble: Trouble) {
        let Some(from) = self.known.replace(to.path) else { return };
        if from.is_drained_into(&to.path) {
            self.known = Some(Path { rate: from.rate.max(to.path.rate), ..to.path });
        } else if self.changes.len() < LIMIT {
            self.changes.push(PathChange {
                at_ns: to.sent_ns,
                before_ns: from.shortest_ns,
                after_ns: to.path.shortest_ns,
                retransmissions: trouble.again - self.trouble.again,
                reordered: trouble.reordered - self.trouble.reordered,
            });
        } else {
            self.left_out += 1;
        }
        (self.lately, self.candidate, self.trouble) = (None, None, trouble);
    }

    /// The changes, in the order of time, from `start_ns` on; and how many more there were.
    pub(super) fn finish(self, start_ns: u64) -> (Vec<PathChange>, u64) {
        let shown =
            |change: PathChange| PathChange { at_ns: change.at_ns.saturating_sub(start_ns), ..change };
        (self.changes.into_iter().map(shown).collect(), self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direction::LONGEST_NS;

    #[test]
    fn no_round_trip_is_longer_than_what_is_in_flight_takes_on_the_slowest_path() {
        let slowest = Path::new(LONGEST_NS, LONGEST_NS, 4);
        assert_eq!(slowest.differs(LONGEST_NS, 1 << 30), None);
        assert_eq!(slowest.differs(1, 1 << 30), Some(Move::Shorter));
    }
}
