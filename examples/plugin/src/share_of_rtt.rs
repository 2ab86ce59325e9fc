//! An ACK policy whose delay is a share of the round trip: four ACKs per round trip of bulk data
//! are enough for a sender that paces, and on a short path an ACK never waits for long (RFC 9293,
//! section 3.8.6.3, sets the bounds; QUIC's ack-frequency extension has the idea).

use ackline::core::Duration;
use ackline::core::policy::ack::{AckPlan, AckPolicy, DataArrival, DataClass, RecvView, SoftObligations};
use ackline::core::policy::spec::{Entry, Key, Keyed};
use ackline::core::policy::{NewAckPolicy, Params, SpecError};

pub const ENTRY: Entry<NewAckPolicy> = Entry {
    source: "this file",
    ..Entry::ack::<ShareOfRtt>("share-of-rtt", "so many ACKs per round trip, and one for every 64 KiB")
};

/// RTT of a path that was never measured.
const UNKNOWN: Duration = Duration::from_millis(40);
/// The longest delay, and the most data that one ACK is for.
const MAX_DELAY: Duration = Duration::from_millis(100);
const MAX_BYTES: u32 = 65_536;

#[derive(Clone, Debug)]
struct ShareOfRtt {
    acks: u64,
}

impl Default for ShareOfRtt {
    fn default() -> Self {
        Self { acks: 4 }
    }
}

impl Keyed for ShareOfRtt {
    const KEYS: &'static [Key<Self>] =
        &[Key::count("acks", 1..=64, "ACKs per round trip", |it| &mut it.acks)];
}

impl AckPolicy for ShareOfRtt {
    fn name(&self) -> &'static str {
        "share-of-rtt"
    }

    fn waives(&self) -> SoftObligations {
        SoftObligations::NONE.and_every_second()
    }

    fn on_data(&mut self, view: &RecvView, data: &DataArrival) -> AckPlan {
        if data.class != DataClass::New || data.fin || view.unacked() >= MAX_BYTES {
            return AckPlan::NOW;
        }
        let rtt = view.srtt.or(view.handshake_rtt).unwrap_or(UNKNOWN);
        let delay = Duration::from_nanos(rtt.as_nanos() / self.acks).min(MAX_DELAY);
        AckPlan::Withhold { until: view.oldest_unacked.unwrap_or(view.now) + delay }
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.set(self.name(), params)
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use ackline::Registry;
    use ackline::core::policy::conformance;

    #[test]
    fn it_keeps_the_rules_of_its_seam() {
        let registry = Registry::default().with_ack(ENTRY);
        for spec in ["share-of-rtt", "share-of-rtt:acks=1", "share-of-rtt:acks=64"] {
            let make = registry.ack(spec).unwrap();
            for seed in 0..50 {
                conformance::ack_policy(&*make, seed);
            }
        }
    }
}
