//! A peer beyond this machine, behind a TUN device: packets come to this machine's kernel, and go
//! no further unless it forwards them.

use crate::network::interfaces;
use crate::network::tunnel::Tunnel;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Time that a peer beyond a kernel that forwards gets to answer before the way back is doubted.
pub(super) const DOUBT: Duration = Duration::from_secs(3);

/// The way to a peer beyond this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beyond {
    peer: IpAddr,
    /// `TUN ack0`.
    device: String,
    /// The stack's address, which answers have to find.
    source: IpAddr,
    /// The setting that lets the kernel forward.
    setting: &'static str,
    /// Its value is 0.
    closed: bool,
}

impl Beyond {
    /// `None` if packets go to this machine, or leave by another device than a TUN.
    pub(super) fn of(tunnel: &Tunnel, targets: &[SocketAddr]) -> Option<Self> {
        let peer = targets.first()?.ip();
        if tunnel.kernel_ends().is_empty() {
            return None;
        }
        let here = interfaces::all().ok()?;
        if here.iter().flat_map(|interface| &interface.addresses).any(|own| own.addr() == peer) {
            return None;
        }
        let source = tunnel.addresses().into_iter().find(|own| own.is_ipv4() == peer.is_ipv4())?;
        let (setting, file) = if peer.is_ipv4() {
            ("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward")
        } else {
            ("net.ipv6.conf.all.forwarding", "/proc/sys/net/ipv6/conf/all/forwarding")
        };
        let closed = fs::read_to_string(file).is_ok_and(|value| value.trim() == "0");
        Some(Self { peer, device: tunnel.name(), source, setting, closed })
    }

    /// What is known before anything was sent: packets cannot arrive.
    pub(super) fn warning(&self) -> Option<String> {
        let Self { peer, device, setting, closed, .. } = self;
        closed.then(|| {
            format!(
                "packets to {peer} leave by {device}, and this machine's kernel does not forward them ({setting} is 0).\n  \
                 --raw INTERFACE sends them from this machine's own address, --dev from one on its network;\n  \
                 or let the kernel forward and masquerade them (docs/devices.md)"
            )
        })
    }

    /// What may be wrong if no answer comes though the kernel forwards.
    pub(super) fn doubt(&self) -> Option<String> {
        let Self { peer, device, source, closed, .. } = self;
        (!closed).then(|| {
            format!(
                "no answer from {peer} yet: packets leave by {device}, and answers to {source} come back only if this\n  \
                 machine masquerades it, or the network has a route to it (docs/devices.md)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_kernel_is_told_at_once_and_an_open_one_is_doubted_later() {
        let way = |closed| Beyond {
            peer: [192, 0, 2, 7].into(),
            device: "TUN ack0".to_owned(),
            source: [198, 18, 0, 2].into(),
            setting: "net.ipv4.ip_forward",
            closed,
        };
        let (closed, open) = (way(true), way(false));
        assert!(closed.warning().expect("told").contains("does not forward them (net.ipv4.ip_forward is 0)"));
        assert!(open.doubt().expect("told").contains("answers to 198.18.0.2 come back only if"));
        assert_eq!((closed.doubt(), open.warning()), (None, None));
    }
}
