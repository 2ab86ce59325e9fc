//! What all schedulers of the table have in common: the shaper and the queue around them, and their parameters.

use crate::queue::{Queue, QueueParams};
use crate::shaper::{Shaped, ShaperParams};
use ackline_tcp_core::policy::sched::EgressScheduler;
use ackline_tcp_core::policy::spec::ParamInfo;
use ackline_tcp_core::policy::{NewEgressScheduler, Params, SpecError};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// How many parameters every scheduler has beside its own.
pub(crate) const COMMON: usize = QueueParams::TABLE.len() + ShaperParams::TABLE.len();

/// A scheduler's own parameters, and those that all have. `N` is their number.
pub(crate) const fn table<const N: usize>(own: &[ParamInfo]) -> [ParamInfo; N] {
    let mut all = [QueueParams::TABLE[0]; N];
    let parts: [&[ParamInfo]; 3] = [own, QueueParams::TABLE, ShaperParams::TABLE];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            all[at] = parts[part][i];
            at += 1;
            i += 1;
        }
        part += 1;
    }
    all
}

/// The maker of the scheduler that `inner` gives for its own parameters, behind queue and shaper.
pub(crate) fn make<S: EgressScheduler + 'static>(
    params: &Params,
    inner: fn(&Params) -> Result<S, SpecError>,
) -> Result<Arc<NewEgressScheduler>, SpecError> {
    let (shaper, rest) = params.split(ShaperParams::TABLE);
    let (queue, own) = rest.split(QueueParams::TABLE);
    let shaper = ShaperParams::default().with(&shaper)?;
    let queue = QueueParams::default().with(&queue)?;
    inner(&own)?;
    Ok(Arc::new(move || {
        // The parameters were found right above.
        let inner = inner(&own).unwrap_or_else(|error| unreachable!("{error}"));
        Box::new(Shaped::new(Queue::new(inner, queue), shaper))
    }))
}
