//! The two classes of packets, acknowledgments and data, of Kalampoukas, Varma and Ramakrishnan,
//! "Improving TCP Throughput over Two-Way Asymmetric Links: Analysis and Solutions"
//! (UCSC-CRL-97-20, 1997).
//!
//! The steps of this family of schedulers are numbered throughout the crate:
//!
//! | steps | what | where |
//! |---|---|---|
//! | 1 to 5 | classes of packets | here, and [`Descriptor::len`](ackline_tcp_core::policy::sched::Descriptor::len) for step 4 |
//! | 6 to 8 | the link: one packet at a time; departed, resumed, popped | the core's egress |
//! | 9 | FIFO | [`Fifo`](crate::Fifo) |
//! | 10 | ACKs first | [`ack_priority`](crate::ack_priority) |
//! | 11 to 15 | backpressure | [`backpressure`](crate::backpressure) |
//! | 16 to 24 | byte counters | [`kalampoukas`](crate::kalampoukas) |

use ackline_tcp_core::policy::sched::{ControlKind, SegmentClass};

/// The class that a packet is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Feedback that a peer's sender waits for.
    Ack,
    /// Everything else.
    Data,
}

impl Class {
    /// The class of a packet.
    #[must_use]
    pub const fn of(class: SegmentClass) -> Self {
        match class {
            // Step 1: ACK without payload, SYN, FIN or RST, including duplicates, SACKs and window
            // updates: each only carries what the peer's sender waits for.
            SegmentClass::PureAck => Self::Ack,
            // Steps 2 and 5: payload decides, even with an ACK; retransmissions keep their place.
            SegmentClass::Data | SegmentClass::Retransmit => Self::Data,
            // Step 3: small packets that open or end a connection do not wait behind data ...
            SegmentClass::Control(ControlKind::Syn | ControlKind::Rst) => Self::Ack,
            // ... but a FIN must not overtake its data, and neither probes nor packets of other
            // protocols are feedback.
            SegmentClass::Control(ControlKind::Fin | ControlKind::Probe | ControlKind::Other) => Self::Data,
        }
    }
}
