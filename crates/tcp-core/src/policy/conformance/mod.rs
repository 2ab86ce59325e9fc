//! Conformance suites: check that a policy obeys the rules of its trait. One function per trait,
//! for the policies of this project and for your own.
//!
//! Each function creates policies with the given maker, drives them with a long random sequence of
//! events as a connection (or an endpoint) would produce, and **panics with a message that says
//! what was wrong, at which step and with which seed**. Call them from tests, with many seeds:
//!
//! ```
//! use ackline_tcp_core::policy::{builtin, cc::CcInit, conformance};
//!
//! for seed in 0..20 {
//!     conformance::congestion_control(&|init: &CcInit| Box::new(builtin::NewReno::new(init)), seed);
//! }
//! ```
//!
//! | rules for every policy |
//! |---|
//! | no event makes it panic or overflow (run the tests with overflow checks, as debug builds have them) |
//! | queries are pure: asking twice gives the same answer |
//! | two instances given the same events answer the same: no clocks, globals or unseeded randomness |
//! | metrics have distinct names that end as their units say, the same order every time, and finite values |
//! | `configure` rejects an unknown parameter, and a rejected `configure` changes nothing |
//!
//! Each function lists the rules of its own trait. Passing says nothing about whether an algorithm
//! is any good.

mod ack;
mod cc;
mod rng;
mod rto;
mod sched;
#[cfg(test)]
mod tests;

pub use ack::ack_policy;
pub use cc::congestion_control;
pub use rto::rto_response;
pub use sched::egress_scheduler;

use crate::policy::{Metric, Metrics, Params, SpecError, Unit};
use alloc::vec::Vec;

/// A parameter that no policy has.
const NO_SUCH_PARAMETER: &str = "no-such-parameter=1";

/// Checks a policy's metrics: named, distinct, finite, and twice the same.
fn check_metrics(who: &str, report: impl Fn(&mut Metrics<'_>)) {
    let mut reported: Vec<Metric> = Vec::new();
    report(&mut Metrics::new(&mut |metric: Metric| {
        let Metric { name, value, unit } = metric;
        assert!(!name.is_empty(), "{who}: a metric has no name");
        assert!(reported.iter().all(|other| other.name != name), "{who}: metric {name} is reported twice");
        assert!(value.is_finite(), "{who}: metric {name} is {value}");
        for other in Unit::ALL.into_iter().filter(|other| !other.suffix().is_empty()) {
            let (suffix, ends) = (other.suffix(), name.ends_with(other.suffix()));
            assert!(
                ends == (other == unit),
                "{who}: metric {name} is in {unit:?}: names in {other:?}, and no others, end with {suffix}"
            );
        }
        reported.push(metric);
    }));
    let mut again = reported.iter();
    report(&mut Metrics::new(&mut |metric| {
        assert!(
            again.next() == Some(&metric),
            "{who}: metrics differ from those of a moment ago: {metric:?}"
        );
    }));
    assert!(again.next().is_none(), "{who}: fewer metrics than a moment ago");
}

/// Checks that `configure` rejects an unknown parameter by name and accepts an empty set.
fn check_configure(who: &str, mut configure: impl FnMut(&Params) -> Result<(), SpecError>) {
    let unknown: Params = NO_SUCH_PARAMETER.parse().unwrap_or_default();
    match configure(&unknown) {
        Ok(()) => panic!("{who}: configure took the unknown parameter {NO_SUCH_PARAMETER}"),
        Err(error) => assert!(
            alloc::format!("{error}").contains("no-such-parameter"),
            "{who}: the error of configure does not name the parameter: {error}"
        ),
    }
    if let Err(error) = configure(&Params::default()) {
        panic!("{who}: configure refused an empty set of parameters: {error}");
    }
}
