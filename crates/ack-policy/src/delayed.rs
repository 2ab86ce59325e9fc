//! `delayed`: the delayed ACK that the core has built in.

use ackline_tcp_core::policy::NewAckPolicy;
use ackline_tcp_core::policy::builtin::DelayedAck;
use ackline_tcp_core::policy::spec::Entry;

pub(crate) const ENTRY: Entry<NewAckPolicy> = Entry {
    aliases: &["rfc5681"],
    source: "RFC 1122 section 4.2.3.2, RFC 5681 section 4.2",
    ..Entry::ack::<DelayedAck>("delayed", "one ACK for every so many full segments, or after a fixed delay")
};
