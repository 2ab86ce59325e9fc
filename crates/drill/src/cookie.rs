//! The fast open cookie that the stack gives to a host (RFC 7413, section 4.1.2), for scripts that
//! call it `TFO_COOKIE`: asked for from another endpoint with the same addresses and keys.

use crate::flow::Flow;
use crate::inbound;
use crate::script::{IpFields, OptionLine, TcpLine};
use crate::settings::Settings;
use crate::world;
use ackline_registry::Registry;
use ackline_tcp_core::config::FastOpen;
use ackline_tcp_core::wire::{TcpFlags, Transport, parse};
use ackline_tcp_core::{AcceptConfig, ListenOn, RxPacket};
use std::net::SocketAddr;
use std::sync::Arc;

/// The cookie for `remote`, the script's end.
pub(crate) fn of(settings: &Settings, local: SocketAddr, remote: SocketAddr, registry: &Registry) -> Vec<u8> {
    let flow = &Flow::new(local, remote);
    let mut world = world::World::new(settings.host.clone(), registry);
    if let Some((current, previous)) = settings.fast_open_keys {
        world.endpoint.set_fast_open_keys(current, previous);
    }
    let mut conn = settings.conn.clone();
    (conn.fast_open, conn.fast_open_cookies) = (FastOpen::Server, true);
    let listens = world.endpoint.listen(world.now, ListenOn::Any, AcceptConfig::new(Arc::new(conn)));
    let request = TcpLine {
        flags: TcpFlags::SYN,
        seq: 0,
        len: 0,
        ack: None,
        window: Some(u16::MAX),
        urgent: None,
        options: vec![
            OptionLine::FastOpen { cookie: Some(vec![]), experimental: false },
            OptionLine::Nop,
            OptionLine::Nop,
        ],
        any_options: false,
    };
    if let (Ok(_), Ok(octets)) = (listens, inbound::segment(flow, &IpFields::default(), &request)) {
        world.inject(octets);
    }
    let answer = world.sent.front().and_then(|sent| {
        let packet = parse(&RxPacket::new(&sent.octets)).ok()?;
        let Transport::Tcp(tcp) = packet.transport else { return None };
        tcp.fast_open().map(|cookie| cookie.as_slice().to_vec())
    });
    answer.unwrap_or_default()
}
