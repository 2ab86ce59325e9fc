//! `delayed`: the delayed ACK that the core has built in.

use ackline_tcp_core::policy::NewAckPolicy;
use ackline_tcp_core::policy::ack::AckInit;
use ackline_tcp_core::policy::builtin::DelayedAck;
use ackline_tcp_core::policy::spec::Entry;
use alloc::boxed::Box;
use alloc::sync::Arc;

pub(crate) const ENTRY: Entry<NewAckPolicy> = Entry {
    aliases: &["rfc5681"],
    summary: "one ACK for every so many full segments, or after a fixed delay",
    source: "RFC 1122 section 4.2.3.2, RFC 5681 section 4.2",
    params: DelayedAck::PARAMS,
    ..Entry::new("delayed", |params| {
        let policy = DelayedAck::from_params(params)?;
        Ok(Arc::new(move |_: &AckInit| Box::new(policy.clone())))
    })
};
