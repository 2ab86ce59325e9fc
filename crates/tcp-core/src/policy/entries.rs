//! Table entries made from the type of a policy alone.

use super::ack::{AckInit, AckPolicy, NewAckPolicy};
use super::cc::NewCongestionControl;
use super::rto::{self, FirstStep, NewRtoResponse, RtoResponse};
use super::spec::{Entry, Keyed, ParamRow, Params};
use super::window::{self, WindowGrowth};
use alloc::boxed::Box;
use alloc::sync::Arc;

impl Entry<NewAckPolicy> {
    /// The ACK policy `P` with its keys as parameters.
    #[must_use]
    pub const fn ack<P: AckPolicy + Keyed + Sync>(name: &'static str, summary: &'static str) -> Self {
        let make = |params: &Params| {
            let policy = P::from_params(P::default().name(), params)?;
            Ok(Arc::new(move |_: &AckInit| Box::new(policy.clone()) as Box<dyn AckPolicy>)
                as Arc<NewAckPolicy>)
        };
        Self { summary, keys: ParamRow::of::<P>, ..Self::new(name, make) }
    }
}

impl Entry<NewCongestionControl> {
    /// The congestion control whose window grows and shrinks as `G` says.
    #[must_use]
    pub const fn growth<G: WindowGrowth + Default + Sync>(summary: &'static str) -> Self {
        let keys = || ParamRow::all(G::KEYS, &G::default());
        Self { summary, keys, ..Self::new(G::NAME, |params| window::make(G::default(), params)) }
    }
}

impl Entry<NewRtoResponse> {
    /// The RTO response `R` with its keys as parameters.
    #[must_use]
    pub const fn rto<R: RtoResponse + Keyed + Sync>(name: &'static str, summary: &'static str) -> Self {
        let make = |params: &Params| {
            let response = R::from_params(R::default().name(), params)?;
            Ok(Arc::new(move || Box::new(response.clone()) as Box<dyn RtoResponse>) as Arc<NewRtoResponse>)
        };
        Self { summary, keys: ParamRow::of::<R>, ..Self::new(name, make) }
    }

    /// The RTO response that takes the step `S` at each timeout.
    #[must_use]
    pub const fn rto_step<S: FirstStep + Default>(summary: &'static str) -> Self {
        let keys = || ParamRow::all(S::KEYS, &S::default());
        Self { summary, keys, ..Self::new(S::NAME, |params| rto::make(S::default(), params)) }
    }
}
