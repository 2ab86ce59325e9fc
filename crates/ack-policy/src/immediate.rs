//! `immediate`: an ACK for every arrival. Gives the sender the finest ACK clock that the network
//! allows, at the price of twice the ACKs; a super-packet is one arrival.

use ackline_tcp_core::policy::NewAckPolicy;
use ackline_tcp_core::policy::ack::{AckCause, AckPlan, AckPolicy, DataArrival, RecvView};
use ackline_tcp_core::policy::spec::{Entry, Keyed};

pub(crate) const ENTRY: Entry<NewAckPolicy> = Entry {
    aliases: &["quickack"],
    source: "RFC 9293 section 3.8.6.3",
    ..Entry::ack::<Immediate>("immediate", "an ACK for every arrival")
};

/// Acknowledges every arrival at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Immediate;

impl Keyed for Immediate {}

impl AckPolicy for Immediate {
    fn name(&self) -> &'static str {
        "immediate"
    }

    fn on_data(&mut self, _view: &RecvView, _data: &DataArrival) -> AckPlan {
        AckPlan::NOW
    }

    fn rule(&self, _view: &RecvView, _cause: AckCause) -> &'static str {
        "every arrival"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::policy::ack::DataClass;
    use ackline_tcp_core::{Instant, SeqNum};

    #[test]
    fn a_single_byte_is_acknowledged_at_once() {
        let mut view = RecvView::new(Instant::ZERO, SeqNum(1), 65_535, 1448);
        view.highest_ack = SeqNum(0);
        let data = DataArrival::new(SeqNum(0), SeqNum(1), DataClass::New);
        assert_eq!(Immediate.on_data(&view, &data), AckPlan::NOW);
        assert_eq!(Immediate.rule(&view, AckCause::Plan), "every arrival");
    }
}
