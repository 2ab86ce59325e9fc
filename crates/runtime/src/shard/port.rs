//! The device of a shard: whether it takes packets, and their largest size.

use super::schedule::{Alarm, Schedule};
use crate::device::Device;
use ackline_tcp_core::events::PacketObserver;
use ackline_tcp_core::{Duration, Instant};

/// While the interface is down, packets wait for it this long, as for room in a device, so that a
/// short interruption costs only its own duration. After that they are lost, so that TCP's own
/// timers (SYN retries, R2) end connections that cannot continue.
const HOLD_WHILE_DOWN: Duration = Duration::from_secs(1);

/// The device, and whether it refused the last packet.
pub(crate) struct Port {
    pub(crate) device: Box<dyn Device>,
    /// Set while a packet was refused and the driver waits until the device is writable; until then
    /// deadlines are served at this instant.
    pub(crate) full: Option<Instant>,
    /// The interface is down: packets wait until this instant, and are lost after it.
    hold_until: Option<Instant>,
    mtu: PortMtu,
    /// Sees what passes the device.
    pub(crate) observer: Option<Box<dyn PacketObserver>>,
}

impl Port {
    pub(crate) const fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// A device for an endpoint whose MTU is `configured`.
    pub(super) fn new(device: Box<dyn Device>, configured: u32) -> Self {
        let mtu = PortMtu::new(configured, device.caps().mtu);
        Self { device, full: None, hold_until: None, mtu, observer: None }
    }

    /// The interface was found down at `now`: true if packets should wait for it.
    pub(super) fn holds(&mut self, now: Instant, schedule: &mut Schedule) -> bool {
        let until = *self.hold_until.get_or_insert_with(|| {
            let until = now + HOLD_WHILE_DOWN;
            schedule.set(until, Alarm::HoldOver);
            until
        });
        now < until
    }

    /// The time for which packets wait for an interface that is down is over. One that came up and
    /// went down again has a later alarm of its own.
    pub(super) fn on_hold_over(&mut self, now: Instant) {
        if self.hold_until.is_some_and(|until| until <= now) {
            self.full = None;
        }
    }

    /// The endpoint's MTU if the device's has changed, once.
    pub(super) fn changed_mtu(&mut self) -> Option<u32> {
        let mtu = self.device.caps().mtu;
        (mtu != self.mtu.device).then(|| {
            self.mtu.device = mtu;
            mtu.min(self.mtu.most).max(LEAST)
        })
    }

    /// True once after an interface that was down has come up.
    pub(crate) fn is_restored(&mut self) -> bool {
        self.hold_until.take_if(|_| !self.device.stats().down).is_some()
    }
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").field("caps", &self.device.caps()).field("full", &self.full).finish()
    }
}

/// The smallest MTU of a link that carries IPv4 (RFC 791), and the length of the longest packet.
const LEAST: u32 = 68;
const LONGEST: u32 = 65_535;

/// The MTU of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortMtu {
    /// As the device said last, in bytes.
    device: u32,
    /// Maximum of the configuration, in bytes.
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
