//! The MTU of the device, which may change at any time.

use super::{Port, StackState};
use ackline_tcp_core::Instant;

/// The smallest MTU of a link that carries IPv4 (RFC 791), and the length of the longest packet.
const LEAST: u32 = 68;
const LONGEST: u32 = 65_535;

/// The MTU of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortMtu {
    /// As the device said last, in bytes.
    device: u32,
    /// What the configuration permits at most, in bytes.
    most: u32,
}

impl PortMtu {
    /// The endpoint is configured with `configured` bytes for a device of `device` bytes: fewer are
    /// a limit.
    pub(super) const fn new(configured: u32, device: u32) -> Self {
        Self { device, most: if configured < device { configured } else { LONGEST } }
    }
}

impl Port {
    /// The device's MTU has become smaller, and the endpoint does not know it yet.
    pub(super) fn has_smaller_mtu(&self) -> bool {
        self.device.caps().mtu < self.mtu.device
    }
}

impl StackState {
    /// Tells the endpoint if the device's MTU has changed. What the device refused for its size
    /// fits then.
    pub(in crate::shard) fn follow_mtu(&mut self, now: Instant) {
        let port = &mut self.device;
        let mtu = port.device.caps().mtu;
        if mtu == port.mtu.device {
            return;
        }
        port.mtu.device = mtu;
        let mtu = mtu.min(port.mtu.most).max(LEAST);
        let followed = self.endpoint.set_mtu(now, mtu);
        debug_assert!(followed.is_ok(), "{followed:?}");
    }
}
