//! `ce-echo`: wraps another policy and sends an ACK at once when the CE mark of arriving data
//! changes. The core does the same with every policy if DCTCP feedback is in use; chosen by name it
//! serves classic ECN, whose sender then learns of a mark without the delay of an ACK.

use crate::{Immediate, LinuxLike};
use ackline_tcp_core::policy::NewAckPolicy;
use ackline_tcp_core::policy::ack::{AckInit, AckPolicy};
use ackline_tcp_core::policy::builtin::{CeEcho, DelayedAck};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed, ParamRow};
use alloc::boxed::Box;
use alloc::sync::Arc;

const NAME: &str = "ce-echo";

pub(crate) const ENTRY: Entry<NewAckPolicy> = Entry {
    summary: "as another policy says, and at once when marking by ECN begins or ends",
    source: "RFC 8257 section 3.2",
    keys: ParamRow::of::<Settings>,
    ..Entry::new(NAME, |params| {
        let inner: fn() -> Box<dyn AckPolicy> = match Settings::from_params(NAME, params)?.inner {
            1 => || Box::new(DelayedAck::default()),
            2 => || Box::new(Immediate),
            _ => || Box::new(LinuxLike::default()),
        };
        Ok(Arc::new(move |_: &AckInit| Box::new(CeEcho::named(NAME, inner()))))
    })
};

#[derive(Clone, Debug, Default)]
struct Settings {
    /// The wrapped policy, by its number.
    inner: usize,
}

impl Keyed for Settings {
    const KEYS: &'static [Key<Self>] = &[Key::choice(
        "inner",
        &["linux-like", "delayed", "immediate"],
        "the policy for all else, with its defaults",
        |it| it.inner,
        |it, at| it.inner = at,
    )];
}
