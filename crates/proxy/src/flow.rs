//! One UDP flow, until nothing has passed for too long.

use crate::file::Resolver;
use crate::proxy::{Config, DNS, Shared, Way};
use crate::target::Protocol;
use crate::upstream::Datagrams;
use ackline_runtime::{Refusal, UdpFlow};
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long a flow to a resolver stays when each question has its answer.
const SETTLED: Duration = Duration::from_secs(1);

/// Room for what an upstream puts before a datagram.
const HEADER: usize = 300;

/// Carries both directions on: those to a resolver for [`SETTLED`] once each question has its answer. A port that nobody serves refuses
/// the client.
pub(crate) async fn carry(shared: &Shared, inside: UdpFlow) {
    let (Ok(client), Ok(wanted)) = (inside.peer_addr(), inside.local_addr()) else { return };
    let _open = shared.counters.open_flows.enter();
    let Config { connect_timeout, server_timeout, .. } = shared.config;
    let (upstream, outside, is_ours) = match shared.way(client.ip(), wanted, Protocol::Udp) {
        Way::Through(upstream, target) => {
            let outside =
                timeout(connect_timeout, upstream.associate(&shared.out, &target, server_timeout)).await;
            (upstream, outside, false)
        }
        Way::Resolver(upstream, resolver) => {
            let out = shared.out_to_resolver();
            let Resolver { address, protocol } = resolver;
            let outside =
                timeout(connect_timeout, upstream.ask(out, address, protocol, server_timeout)).await;
            (upstream, outside, true)
        }
        Way::Refuse => return inside.refuse(),
        Way::Drop => return,
    };
    match outside {
        Ok(Ok(outside)) => {
            let flow = Flow { shared, inside, outside, resolves: wanted.port() == DNS, is_ours };
            flow.run(client.ip()).await;
        }
        Ok(Err(error)) => match shared.refusal(&*upstream, &error) {
            Refusal::Drop => {}
            Refusal::Rst | Refusal::Unreachable => inside.refuse(),
        },
        Err(_) => shared.counters.upstream_timeouts.one(),
    }
}

struct Flow<'a> {
    shared: &'a Shared,
    inside: UdpFlow,
    outside: Datagrams,
    /// It is to port 53.
    resolves: bool,
    /// The answers are those of the proxy's own resolver.
    is_ours: bool,
}

impl Flow<'_> {
    async fn run(self, client: std::net::IpAddr) {
        let Self { shared, inside, mut outside, resolves, is_ours } = self;
        let counters = &shared.counters;
        let headroom = outside.headroom();
        let mtu = shared.config.mtu as usize;
        let mut there = Vec::new();
        // A longer datagram would not pass the device, and is lost. One byte more tells which those are.
        let mut back = vec![0; mtu + HEADER];
        let (mut questions, mut answers) = (0_u64, 0_u64);
        loop {
            // Another question may be on its way, and would be lost if it came to a flow that ends just then.
            let settled = resolves && questions > 0 && answers >= questions;
            // What a client sends may have come in fragments. Room for that is only kept while it is needed.
            there.shrink_to(headroom + mtu);
            there.resize(headroom, 0);
            let failed = tokio::select! {
                taken = inside.recv_buf(&mut there) => match taken {
                    Ok(_) => {
                        questions += 1;
                        counters.datagrams_up.one();
                        if is_ours {
                            counters.dns_questions.one();
                        }
                        outside.send(&mut there).await.err()
                    }
                    // It has ended, or the client has closed its socket.
                    Err(_) => return,
                },
                taken = outside.recv(&mut back) => match taken {
                    Ok(at) => {
                        answers += 1;
                        let datagram = &back[at];
                        if is_ours {
                            counters.dns_answers.one();
                            shared.names.learn(client, datagram);
                        }
                        match inside.send(datagram).await {
                            Ok(_) => counters.datagrams_down.one(),
                            // It is longer than the device carries.
                            Err(error) if error.kind() == ErrorKind::InvalidInput => counters.datagrams_too_long.one(),
                            Err(_) => return,
                        }
                        None
                    }
                    Err(error) => Some(error),
                },
                () = sleep(SETTLED), if settled => return,
            };
            match failed.as_ref().map(io::Error::kind) {
                Some(ErrorKind::ConnectionRefused) => {
                    counters.upstream_refused.one();
                    return inside.refuse();
                }
                // A socket tells of one datagram. What another way fails with has ended it; the next datagram gets another one.
                Some(_) if !matches!(outside, Datagrams::Direct(_)) => return,
                _ => {}
            }
        }
    }
}
