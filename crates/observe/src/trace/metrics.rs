//! The data of `recovery:metrics_updated`: only what has changed, as qlog asks for.

use super::time::millis;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::{Rate, Window};
use serde::{Deserialize, Serialize};

/// Congestion state; what is missing has not changed, or has no value yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metrics {
    /// cwnd in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<u64>,
    /// Slow-start threshold in bytes; missing while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u64>,
    /// RFC 6675's pipe, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight: Option<u32>,
    /// The peer's receive window in bytes; not qlog's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_window: Option<u32>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt: Option<f64>,
    /// Milliseconds, over the last five minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<f64>,
    /// Bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<u64>,
}

impl Metrics {
    /// Those of [`TraceEvent::Congestion`].
    pub(super) fn of(event: &TraceEvent) -> Option<Self> {
        let TraceEvent::Congestion { cwnd, ssthresh, pipe, snd_wnd, srtt, min_rtt, pacing_rate } = *event
        else {
            return None;
        };
        Some(Self {
            congestion_window: Some(cwnd),
            ssthresh: Some(ssthresh).filter(|bytes| *bytes != Window::MAX.bytes()),
            bytes_in_flight: Some(pipe),
            peer_window: Some(snd_wnd),
            smoothed_rtt: srtt.map(millis),
            min_rtt: min_rtt.map(millis),
            pacing_rate: pacing_rate.map(Rate::bits_per_second),
        })
    }

    /// Takes those of `newer` that have a value.
    pub fn update(&mut self, newer: &Self) {
        *self = Self::choose::<LatestValue>(self, newer);
    }

    /// What of `self` differs from `before`; `None` if nothing does.
    pub(super) fn since(&self, before: &Self) -> Option<Self> {
        let changes = Self::choose::<ChangedValue>(before, self);
        (changes != Self::default()).then_some(changes)
    }

    fn choose<C: Choice>(old: &Self, new: &Self) -> Self {
        Self {
            congestion_window: C::of(old.congestion_window, new.congestion_window),
            ssthresh: C::of(old.ssthresh, new.ssthresh),
            bytes_in_flight: C::of(old.bytes_in_flight, new.bytes_in_flight),
            peer_window: C::of(old.peer_window, new.peer_window),
            smoothed_rtt: C::of(old.smoothed_rtt, new.smoothed_rtt),
            min_rtt: C::of(old.min_rtt, new.min_rtt),
            pacing_rate: C::of(old.pacing_rate, new.pacing_rate),
        }
    }
}

/// What becomes of an old and a new value.
trait Choice {
    fn of<T: PartialEq>(old: Option<T>, new: Option<T>) -> Option<T>;
}

/// The new one, if there is one.
struct LatestValue;

impl Choice for LatestValue {
    fn of<T: PartialEq>(old: Option<T>, new: Option<T>) -> Option<T> {
        new.or(old)
    }
}

/// The new one, if it differs.
struct ChangedValue;

impl Choice for ChangedValue {
    fn of<T: PartialEq>(old: Option<T>, new: Option<T>) -> Option<T> {
        new.filter(|new| old.as_ref() != Some(new))
    }
}
