//! The way out: the kernel's sockets, or a stack that is a host on the network of an interface.

use crate::args::proxy::{OutArgs, ProxyArgs};
use crate::args::{PacingKind, RawFirewall, TunnelArgs};
use crate::failure::Failure;
use crate::network::program::INTERFACE;
use crate::network::tunnel::{PROBES, PortsFor, Tunnel};
use crate::settings::Settings;
use ackline::runtime::Stack;
use ackline::runtime::stack::Shards;

/// The stack's place, as far as that can be told without touching the system; `None`: the kernel's
/// sockets.
pub(super) fn plan(args: &ProxyArgs) -> Result<Option<Tunnel>, Failure> {
    let OutArgs { out_dev, out_local, out_gateway, out_mac } = &args.out;
    let Some(dev) = out_dev else { return Ok(None) };
    let tunnel = TunnelArgs {
        shards: Shards::One,
        tun: INTERFACE.to_owned(),
        dev: Some(dev.clone()),
        socket: None,
        raw: None,
        ports: None,
        raw_firewall: RawFirewall::default(),
        local: out_local.clone(),
        peer: vec![],
        gateway: out_gateway.clone(),
        mac: *out_mac,
        qdisc_bypass: false,
        share_address: false,
        mtu: None,
        plain: args.device.plain,
        busy_poll: None,
        pacing: PacingKind::default(),
    };
    tunnel.plan(None, PortsFor::Connections(1)).map(Some).map_err(|failure| failure.behind("--out-dev"))
}

/// Starts the stack. Whoever vanishes says nothing, so its connections are probed; and what one may
/// have in the shaper is bounded.
pub(super) fn start(tunnel: &Tunnel, settings: &Settings) -> Result<Stack, Failure> {
    let device = tunnel.open().map_err(|failure| failure.behind("--out-dev"))?;
    tunnel.start(device, settings, |connections| {
        connections.keep_alive = Some(PROBES);
        settings.shorten_send_buffer(connections);
    })
}
