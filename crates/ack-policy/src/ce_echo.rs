//! `ce-echo`: wraps another policy and sends an ACK at once when the CE mark of arriving data
//! changes. The core does the same with every policy if DCTCP feedback is in use; chosen by name it
//! serves classic ECN, whose sender then learns of a mark without the delay of an ACK.

use crate::{Immediate, LinuxLike};
use ackline_tcp_core::policy::ack::{AckInit, AckPolicy};
use ackline_tcp_core::policy::builtin::{CeEcho, DelayedAck};
use ackline_tcp_core::policy::spec::{Entry, ParamInfo};
use ackline_tcp_core::policy::{NewAckPolicy, Params, SpecError};
use alloc::boxed::Box;
use alloc::sync::Arc;

const NAME: &str = "ce-echo";
const INNER: [&str; 3] = ["linux-like", "delayed", "immediate"];

pub(crate) const ENTRY: Entry<NewAckPolicy> = Entry {
    summary: "as another policy says, and at once when marking by ECN begins or ends",
    source: "RFC 8257 section 3.2",
    params: PARAMS,
    ..Entry::new(NAME, |params| {
        let inner = inner(params)?;
        Ok(Arc::new(move |_: &AckInit| Box::new(CeEcho::named(NAME, inner()))))
    })
};

const PARAMS: &[ParamInfo] = &[ParamInfo {
    name: "inner",
    default: "linux-like",
    range: "linux-like|delayed|immediate",
    summary: "the policy for all else, with its defaults",
}];

/// The maker of the wrapped policy.
fn inner(params: &Params) -> Result<fn() -> Box<dyn AckPolicy>, SpecError> {
    let mut chosen = 0;
    for param in params.iter() {
        match param.key() {
            "inner" => chosen = param.choice(&INNER)?,
            _ => return Err(param.unknown(NAME, PARAMS)),
        }
    }
    Ok(match chosen {
        1 => || Box::new(DelayedAck::default()),
        2 => || Box::new(Immediate),
        _ => || Box::new(LinuxLike::default()),
    })
}
