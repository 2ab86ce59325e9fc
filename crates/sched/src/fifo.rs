//! `fifo`: the queue that the core has built in, behind the shaper.

use crate::shaper::{Shaped, ShaperParams};
use ackline_tcp_core::policy::NewEgressScheduler;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::policy::spec::Entry;
use alloc::boxed::Box;
use alloc::sync::Arc;

pub(crate) const ENTRY: Entry<NewEgressScheduler> = Entry {
    name: "fifo",
    aliases: &[],
    summary: "first in, first out; with rate=, behind a token-bucket shaper",
    source: "",
    params: ShaperParams::TABLE,
    make: |params| {
        let shaper = ShaperParams::default().with(params)?;
        Ok(Arc::new(move || Box::new(Shaped::new(Fifo::default(), shaper))))
    },
};
