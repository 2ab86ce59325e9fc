//! The states of the machine (section 5.1.1), and the gains of each (section 5.6.1).

use super::{Bbr, BbrParams};

/// A state. The four middle ones are those of ProbeBW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The rate doubles each round trip, until it is no longer matched by what arrives.
    Startup,
    /// The queue that Startup left drains.
    Drain,
    /// Less than the bandwidth, until the flight is safely below the bounds.
    Down,
    /// The bandwidth, with headroom for others.
    Cruise,
    /// One round trip at the bandwidth, without the short-term bounds, so that what Up sees is its
    /// own.
    Refill,
    /// More than the bandwidth: is there more, and does it fit?
    Up,
    /// A small flight, so that the round trip without a queue shows.
    ProbeRtt,
}

impl State {
    /// In a state of ProbeBW.
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// The flow looks for more bandwidth: what is lost now says nothing of the rate before.
    pub(super) const fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// For metrics: the order of declaration, from 0.
    pub(super) const fn number(self) -> u8 {
        self as u8
    }

    /// Multiplier of the bandwidth, in percent.
    const fn pacing_gain(self, params: &BbrParams) -> u32 {
        match self {
            Self::Startup => params.startup_gain,
            Self::Drain => params.drain_gain,
            Self::Down => params.down_gain,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 100,
            Self::Up => params.up_gain,
        }
    }

    /// Multiplier of the bandwidth-delay product, in percent.
    const fn cwnd_gain(self, params: &BbrParams) -> u32 {
        match self {
            Self::Startup | Self::Drain | Self::Down | Self::Cruise | Self::Refill => params.cwnd_gain,
            Self::Up => params.cwnd_gain + UP_CWND_GAIN,
            Self::ProbeRtt => params.probe_rtt_gain,
        }
    }
}

/// In Up the window holds a quarter of the bandwidth-delay product more: 2.25 times it.
const UP_CWND_GAIN: u32 = 25;

impl Bbr {
    pub(super) const fn pacing_gain(&self) -> u32 {
        self.state.pacing_gain(&self.params)
    }

    pub(super) const fn cwnd_gain(&self) -> u32 {
        self.state.cwnd_gain(&self.params)
    }
}
